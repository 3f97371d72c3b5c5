#!/usr/bin/env bash
# Runs in the launcher: waits until every worker accepts ssh, and then execs mpirun.
#
#   launcher.sh mpirun -n 4 ... tengen train ...
#
# LOGS_FOLDER gets the output of every rank, in one folder per start.
# Exit codes: mpirun's exit code, 1 if a worker does not answer, 2 for bad usage.
set -euo pipefail

settings=/etc/tengen/mpi/ssh_config
most_s=${WORKERS_WAIT_S:-900}
if [[ ${1:-} != mpirun ]]; then
  printf 'launcher (%s) must begin with mpirun; correct the arguments\n' "${1:-}" >&2
  exit 2
fi
shift

# Every worker has the job's key as its host key.
printf '* %s\n' "$(</etc/tengen/ssh/id_rsa.pub)" >/tmp/known_hosts
hosts=$(cut -d ' ' -f 1 /etc/mpi/hostfile)
while :; do
  missing=()
  for host in $hosts; do
    ssh -n -F "$settings" "$host" true 2>/tmp/ssh.log || missing+=("$host")
  done
  ((${#missing[@]})) || break
  if ((SECONDS >= most_s)); then
    printf 'workers (%s) must answer after %s s, %s; look at their pods\n' \
      "${missing[*]}" "$most_s" "$(tail -n 1 /tmp/ssh.log)" >&2
    exit 1
  fi
  printf 'waits for %s of %s workers, %s s of %s: %s\n' "${#missing[@]}" \
    "$(wc -w <<<"$hosts")" "$SECONDS" "$most_s" "${missing[*]}"
  sleep 5
done

logs=$LOGS_FOLDER/$(date -u +%Y%m%dT%H%M%SZ)
mkdir -p "$logs"
printf 'ranks print to %s\n' "$logs"
exec mpirun --mca plm_rsh_agent "ssh -F $settings" --output-filename "$logs" "$@"
