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
fetched=$folder/fetched
mkdir -p "$fetched"
python3 /usr/local/share/tengen/fetch_minigo.py "$fetched"
if [[ ! -d $fetched/unpacked ]]; then
  rm -rf "$fetched/unpacked.new"
  mkdir "$fetched/unpacked.new"
  tar -xzf "$fetched/checkpoint.tar.gz" -C "$fetched/unpacked.new"
  mv "$fetched/unpacked.new" "$fetched/unpacked"
fi
# Of several checkpoints the last one; a generation is a folder of six digits.
index=$(find "$fetched/unpacked" -name '*.index' | sort -V | tail -n 1)
generation=$(find "$fetched/unpacked" -type d -name '[0-9][0-9][0-9][0-9][0-9][0-9]' | sort | sed -n 1p)
if [[ -z $index || -z $generation ]]; then
  printf 'data (%s) must have a checkpoint and generations of games; remove it\n' \
    "$fetched/unpacked" >&2
  exit 1
fi
[[ -d $folder/target ]] ||
  tengen data import-minigo --checkpoint "$fetched/target" --out "$folder/target"
[[ -d $folder/checkpoint ]] ||
  tengen data import-minigo --checkpoint "${index%.index}" --out "$folder/checkpoint"
tengen data import-minigo --examples "$(dirname "$generation")" --out "$folder/examples"
: >"$folder/READY.new"
mv "$folder/READY.new" "$folder/READY"
printf 'data (%s) is complete\n' "$folder"
