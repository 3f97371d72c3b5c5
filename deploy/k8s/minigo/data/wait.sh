#!/usr/bin/env bash
# Waits until a file exists, and prints its name while it waits.
#
#   wait.sh FILE SECONDS WHO
#
# WHO names the Job that creates FILE. Exit codes: 0 FILE exists, 1 time is up after SECONDS.
set -euo pipefail

file=$1 most_s=$2 who=$3
until [[ -f $file ]]; do
  if ((SECONDS >= most_s)); then
    printf 'data (%s) must be there after %s s; look at %s\n' "$file" "$most_s" "$who" >&2
    exit 1
  fi
  printf 'waits for %s of %s, %s s of %s\n' "$file" "$who" "$SECONDS" "$most_s"
  sleep "${PAUSE_S:-10}"
done
