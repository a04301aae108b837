#!/usr/bin/env bash
# Pins the base images of both Dockerfiles to the digests that their tags have now, and prints these. Needs docker.
set -euo pipefail
cd "$(dirname "$0")/.."
for image in $(sed -n 's/^FROM \([^ @]*:[^ @]*\).*/\1/p' Dockerfile Dockerfile.purple | sort -u); do
  digest=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}')
  sed -i "s|^FROM $image[^ ]*|FROM $image@$digest|" Dockerfile Dockerfile.purple
  printf '%s@%s\n' "$image" "$digest"
done
