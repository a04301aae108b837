# Sourced by the build scripts: the options they share and how an image is built and pushed.
# Sets: registry, tag, platform, push, engine, dry_run.
registry=${WABE_REGISTRY:-ghcr.io/hjerpe}
tag=latest
platform=${WABE_PLATFORM:-linux/amd64} # what AgentBeats runs
push=no
engine=${WABE_ENGINE:-docker}
dry_run=no

stop() {
  printf 'error: %s\n' "$*" >&2
  exit 2
}

# Takes one shared option; sets `taken` to how many words it was, 0 when it is none of them.
take_shared_option() {
  taken=2
  case $1 in
    --push) push=yes taken=1 ;;
    --dry-run) dry_run=yes taken=1 ;;
    --registry | --tag | --platform | --engine)
      [ $# -ge 2 ] && [ -n "$2" ] || stop "$1 needs a value"
      case $1 in
        --registry) registry=${2%/} ;;
        --tag) tag=$2 ;;
        --platform) platform=$2 ;;
        --engine) engine=$2 ;;
      esac
      ;;
    *) taken=0 ;;
  esac
}

require_engine() {
  [ "$dry_run" = yes ] || command -v "$engine" >/dev/null ||
    stop "$engine is not installed; install Docker or name another engine with --engine"
}

run() {
  if [ "$dry_run" = yes ]; then
    printf '%s\n' "$*"
  else
    "$@"
  fi
}

# build_image IMAGE DOCKERFILE [further options of `build`]
build_image() {
  image=$1 dockerfile=$2
  shift 2
  printf 'building %s\n' "$image" >&2
  run "$engine" build --platform "$platform" --file "$dockerfile" --tag "$image" "$@" .
  if [ "$push" = yes ]; then
    run "$engine" push "$image"
  fi
}

# Any module of src/participants that has a `create` function is a participant, and so is every provider of models. Without
# plug-ins that bring some, the last pattern matches nothing.
list_agents() {
  for module in src/participants/*.py src/shared/llm/providers/*.py src/judge/plugins/*/*.py; do
    if grep -qsE '^(def create\(|PROVIDER = )' "$module"; then
      name=$(basename "$module" .py)
      # A plug-in's module of this name stands for its folder.
      [ "$name" != participant ] || name=$(basename "$(dirname "$module")")
      echo "$name"
    fi
  done | sort
}
