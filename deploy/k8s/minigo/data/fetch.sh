#!/usr/bin/env bash
# Downloads the published checkpoint and target of MLPerf minigo and converts them to
# tengen's files. A repeated call skips the files that exist.
#
#   fetch.sh FOLDER
#
# FOLDER/target is then the target model, FOLDER/checkpoint the initial model and
# FOLDER/examples its generations of games. FOLDER/READY is created last.
set -euo pipefail

folder=$1
# The data that the benchmark needs: store.num_generations and store.min_games.
least_generations=5
least_games=8192
if [[ -f $folder/READY ]]; then
  printf 'data (%s) is there already\n' "$folder"
  exit 0
fi
fetched=$folder/fetched
mkdir -p "$fetched"
# Retries here, because the Job's own retries end in minutes; leaves an hour for the import.
most_s=${FETCH_WAIT_S:-18000}
while :; do
  code=0
  python3 /usr/local/share/tengen/fetch_minigo.py "$fetched" || code=$?
  if ((code != 1 || SECONDS >= most_s)); then break; fi
  printf 'fetches what is missing again, after %s s of %s\n' "$SECONDS" "$most_s"
  sleep "${PAUSE_S:-60}"
done
((code == 0)) || exit "$code"
if [[ ! -d $fetched/unpacked ]]; then
  rm -rf "$fetched/unpacked.new"
  mkdir "$fetched/unpacked.new"
  tar -xzf "$fetched/checkpoint.tar.gz" -C "$fetched/unpacked.new"
  mv "$fetched/unpacked.new" "$fetched/unpacked"
fi
# Uses the last of several checkpoints; a generation is a folder of six digits.
index=$(find "$fetched/unpacked" -name '*.index' | sort -V | tail -n 1)
parents=$(find "$fetched/unpacked" -type d \
  -name '[0-9][0-9][0-9][0-9][0-9][0-9]' -prune -printf '%h\n' | sort -u)
# The reference also stores holdout games, which are not training data.
named=$(grep -E '/selfplay$' <<<"$parents" || true)
selfplay=${named:-$parents}
if [[ $selfplay == *$'\n'* ]]; then
  printf 'data (%s) must have one folder of generations, not %s; remove the others\n' \
    "$fetched/unpacked" "${selfplay//$'\n'/ and }" >&2
  exit 1
fi
if [[ -z $index || -z $selfplay ]]; then
  printf 'data (%s) must have a checkpoint and generations of games; remove it\n' \
    "$fetched/unpacked" >&2
  exit 1
fi
[[ -d $folder/target ]] ||
  tengen data import-minigo --checkpoint "$fetched/target" --out "$folder/target"
[[ -d $folder/checkpoint ]] ||
  tengen data import-minigo --checkpoint "${index%.index}" --out "$folder/checkpoint"
tengen data import-minigo --examples "$selfplay" --out "$folder/examples" |
  tee "$fetched/generations.txt"
# Each line has the form "000017: 8192 games, 1500000 rows".
num_whole=0
while read -r _ num_games _; do
  ((num_games < least_games)) || num_whole=$((num_whole + 1))
done < <(grep -E '^[0-9]{6}: [0-9]+ games' "$fetched/generations.txt")
if ((num_whole < least_generations)); then
  printf 'data (%s) must have %d generations of at least %d games, not %d; look at %s\n' \
    "$selfplay" "$least_generations" "$least_games" "$num_whole" \
    "$fetched/generations.txt" >&2
  exit 1
fi
: >"$folder/READY.new"
mv "$folder/READY.new" "$folder/READY"
printf 'data (%s) is complete\n' "$folder"
