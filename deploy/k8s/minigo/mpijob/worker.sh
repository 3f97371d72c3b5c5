#!/usr/bin/env bash
# Runs in a worker: accepts the launcher's mpirun, and gives roles time to save when the
# pod ends.
#
# mpirun's daemon and ranks start through ssh. Roles are processes in their own sessions,
# which save and exit when their rank has ended (docs/howto/machines/launch_mpi.md). When
# the pod is asked to end, this script kills the daemon and the ranks and waits for the
# roles. sshd alone would exit immediately, which would end the container and lose all
# unsaved data.
set -euo pipefail

most_s=${SAVE_WAIT_S:-80}

# Prints the processes whose command line matches a pattern. shellcheck ignores the trap:
# shellcheck disable=SC2329
processes() {
  local folder words
  for folder in /proc/[0-9]*; do
    words=$(tr '\0' ' ' 2>/dev/null <"$folder/cmdline") || continue
    if [[ $words =~ $1 ]]; then printf '%s\n' "${folder#/proc/}"; fi
  done
}

# shellcheck disable=SC2329
finish() {
  trap '' TERM INT
  local id
  kill "$listener" 2>/dev/null || true
  # Kills the daemon first, so that mpirun also ends the ranks on all other workers.
  for id in $(processes '(^|/)orted ') $(processes ' train .*--launch mpi'); do
    kill -KILL "$id" 2>/dev/null || true
  done
  SECONDS=0
  printf 'ends; roles that save: %s\n' "$(processes 'tengen\.launch\.' | wc -l)"
  while [[ -n $(processes 'tengen\.launch\.') ]] && ((SECONDS < most_s)); do sleep 1; done
  if [[ -n $(processes 'tengen\.launch\.') ]]; then
    printf 'roles (still there) must save in %s s; their last turn is lost\n' "$most_s" >&2
    exit 1
  fi
  printf 'all have saved, after %s s\n' "$SECONDS"
  exit 0
}

# An sshd session does not inherit the container's variables, so these are passed: those of
# tengen and Python, and those read by network and GPU libraries.
variables=$(env | grep -E '^(PYTHON|TENGEN_|NCCL_|GLOO_|OMP_|CUDA_)[A-Z0-9_]*=[^ ]*$' | tr '\n' ' ' || true)
trap finish TERM INT
"$(command -v sshd)" -D -e -f /etc/tengen/mpi/sshd_config \
  -o "SetEnv HOME=/tmp $variables" &
listener=$!
printf 'lets mpirun in\n'
code=0
wait "$listener" || code=$?
printf 'sshd (exit code %s) must not end; read what it said\n' "$code" >&2
exit 1
