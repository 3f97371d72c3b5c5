#!/usr/bin/env bash
# Builds, checks and measures on a machine with an NVIDIA GPU, in one call of nine minutes (--seconds):
#
#   benchmarks/gpu/gpu.sh | tee gpu.jsonl
#
# One JSON object a stage, the last one sums up; a stage that fails does not end the others.
# PYTHON is the interpreter that has torch (python3). What it lacks for the build comes from the
# wheels in TENGEN_WHEELS where that is set, so that no network is needed, else from pip.
# Options are those of benchmarks/gpu/gpu.py.
set -euo pipefail
exec "${PYTHON:-python3}" "$(dirname "$0")/gpu.py" "$@"
