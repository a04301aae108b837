#!/usr/bin/env bash
# Prints WABE_REGISTRY and TAG of the images that a workflow publishes, for its environment.
#   scripts/name-images.sh [SUFFIX]
# SUFFIX: appended to the tag, such as -arm64
set -euo pipefail

# Image names must be lower case, but the owner's name may not be.
printf 'WABE_REGISTRY=ghcr.io/%s\n' "$(tr '[:upper:]' '[:lower:]' <<<"$GITHUB_REPOSITORY_OWNER")"
case $GITHUB_REF in
  refs/tags/v*) tag=${GITHUB_REF#refs/tags/v} ;;
  *) tag=latest ;;
esac
printf 'TAG=%s\n' "$tag${1:-}"
