#!/usr/bin/env bash
# Builds participants' images: all of them, or those named. Any module of src/participants with a `create` is
# one, and so is every provider of models.
#   scripts/build-purple-images.sh --list
#   scripts/build-purple-images.sh [NAME …] [--model MODEL] [--tag TAG] [--registry REGISTRY] [--push]
#                                  [--requirements LOCK] [--platform PLATFORM] [--engine docker] [--dry-run]
# --model: the model baked in as default, such as gemini-2.5-flash; WABE_PARTICIPANT_MODEL still goes before it
# --requirements: a lock file requirements-*.lock with what a module of your own imports beside what is there already
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/image-options.sh

model=""
names=""
lock=()
while [ $# -gt 0 ]; do
  take_shared_option "$@"
  [ "$taken" = 0 ] || { shift "$taken" && continue; }
  case $1 in
    --list) list_agents && exit 0 ;;
    --model)
      [ $# -ge 2 ] && [ -n "$2" ] || stop "--model needs a value"
      model=$2
      shift 2
      ;;
    --requirements)
      [ $# -ge 2 ] && [ -f "$2" ] || stop "--requirements needs a lock file of this folder"
      lock=(--build-arg "REQUIREMENTS=$2")
      shift 2
      ;;
    -h | --help) sed -n '2,$s/^# \{0,1\}//p' "$0" | head -8 && exit 0 ;;
    -*) stop "$1 is not an option; see --help" ;;
    *) names="$names $1" && shift ;;
  esac
done

known=$(list_agents)
[ -n "$known" ] || stop "there is no participant in src/participants"
for name in $names; do
  # Of the first version.
  case $name in adk_default) stop "$name is now: gemini" ;; reliability) stop "$name is now: replay" ;; esac
  grep -qxF -- "$name" <<<"$known" || stop "there is no participant $name; one of:" $known
done
require_engine
for name in ${names:-$known}; do
  build_image "$registry/wabe-purple-$name:$tag" Dockerfile.purple --build-arg "AGENT=$name" --build-arg "MODEL=$model" \
    ${lock[@]+"${lock[@]}"}
done
