#!/usr/bin/env bash
# Fetches the published checkpoint and target of MLPerf minigo and makes tengen's files of
# them. It may be started again at any time: what is there is not made again.
#
#   fetch.sh FOLDER
#
# FOLDER/target is then the target as a model, FOLDER/checkpoint the model to begin from
# and FOLDER/examples its generations of games. FOLDER/READY comes last.
set -euo pipefail

folder=$1
if [[ -f $folder/READY ]]; then
  printf 'data (%s) is there already\n' "$folder"
  exit 0
fi
mkdir -p "$folder/fetched"
python3 /usr/local/share/tengen/fetch_minigo.py "$folder/fetched"
# Of several checkpoints the last one.
index=$(find "$folder/fetched" -path '*/work_dir/*.index' | sort -V | tail -n 1)
examples=$(find "$folder/fetched" -type d -name selfplay | head -n 1)
if [[ -z $index || -z $examples ]]; then
  printf 'data (%s) must have work_dir and selfplay; fetch it again\n' "$folder/fetched" >&2
  exit 1
fi
[[ -d $folder/target ]] ||
  tengen data import-minigo --checkpoint "$folder/fetched/target" --out "$folder/target"
[[ -d $folder/checkpoint ]] ||
  tengen data import-minigo --checkpoint "${index%.index}" --out "$folder/checkpoint"
tengen data import-minigo --examples "$examples" --out "$folder/examples"
: >"$folder/READY.new"
mv "$folder/READY.new" "$folder/READY"
printf 'data (%s) is complete\n' "$folder"
