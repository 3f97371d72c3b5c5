#!/usr/bin/env bash
# Runs the core's fuzz targets in turn: PROGRAM SECONDS [TARGET...], by default all targets.
# Inputs that reach new code are stored in build/fuzz/corpus, and inputs that find a fault in
# build/fuzz/found; the exit code is non-zero if there are any faults.
set -euo pipefail
program=$1 seconds=$2
shift 2
corpus=build/fuzz/corpus found=build/fuzz/found
mapfile -t targets < <(TENGEN_FUZZ_SEEDS=$corpus "$program")
((!$#)) || targets=("$@")
failed=()
for target in "${targets[@]}"; do
  mkdir -p "$corpus/$target" "$found/$target"
  echo "fuzz: $target for $seconds s"
  TENGEN_FUZZ_TARGET=$target "$program" -max_total_time="$seconds" -timeout=20 \
    -rss_limit_mb=2048 -malloc_limit_mb=1024 -max_len=20000 -print_final_stats=1 \
    -artifact_prefix="$found/$target/" "$corpus/$target" >"$found/$target.log" 2>&1 ||
    failed+=("$target")
  grep -E 'cov: ' "$found/$target.log" | tail -1 || true
  grep -E 'number_of_executed_units|ERROR|SUMMARY' "$found/$target.log" || true
done
if ((${#failed[@]})); then
  echo "fuzz: faults in ${failed[*]}; see $found, and keep the input in core/fuzz/found" >&2
  exit 1
fi
