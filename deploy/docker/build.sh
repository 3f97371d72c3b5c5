#!/usr/bin/env bash
# Builds a tengen image: checks its inputs, which needs no Docker, and then builds it.
#
#   deploy/docker/build.sh              the CPU image
#   deploy/docker/build.sh --cuda       the image for NVIDIA GPUs (has never run)
#   deploy/docker/build.sh --dry-run    checks, and prints the build command
#   deploy/docker/build.sh --pin        writes the base image's digest into base_image
#
# REPOSITORY=registry.example.com/tengen names the image. Exit codes: 0 success, 1 failure,
# 2 bad usage or a refused input.
set -euo pipefail
cd "$(dirname "$0")/../.."

refuse() {
  printf 'build: %s\n' "$1" >&2
  exit "${2:-2}"
}

here=deploy/docker
file=$here/Dockerfile
suffix=""
dry_run=0
pin=0
for option in "$@"; do
  case $option in
    --cuda) file=$here/Dockerfile.cuda suffix=-cuda ;;
    --dry-run) dry_run=1 ;;
    --pin) pin=1 ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0" && exit 0 ;;
    *) refuse "option ($option) is not known; use --cuda, --dry-run or --pin" ;;
  esac
done

python3 $here/check_inputs.py "$file" || exit
if command -v shellcheck >/dev/null; then
  shellcheck $here/build.sh || refuse "build.sh must pass shellcheck; repair it"
fi

needs_docker() {
  command -v docker >/dev/null || refuse "docker (not found) must be installed; or use --dry-run" 1
}

base=$(<$here/base_image)
if ((pin)); then
  needs_docker
  tag=${base%@*}
  # This command asks the registry and needs no daemon.
  digest=$(docker buildx imagetools inspect "$tag" --format '{{.Manifest.Digest}}') ||
    refuse "digest (of $tag) must come from its registry; check the network" 1
  [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || refuse "digest ($digest) must be sha256:...; try again" 1
  printf '%s@%s\n' "$tag" "$digest" >$here/base_image
  printf 'build: base_image is now %s@%s\n' "$tag" "$digest"
  exit 0
fi

version=$(python3 $here/check_inputs.py --tag)
image=${REPOSITORY:-tengen}:$version$suffix
command=(docker build --file "$file" --build-arg "BASE=$base" --tag "$image" .)
if ((dry_run)); then
  printf '%q ' "${command[@]}"
  printf '\n'
  exit 0
fi
needs_docker
docker info >/dev/null 2>&1 || refuse "docker (no daemon) must answer; start it, or use --dry-run" 1
"${command[@]}"
printf 'build: %s\n' "$image"
