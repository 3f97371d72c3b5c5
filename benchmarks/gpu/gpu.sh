#!/usr/bin/env bash
# Builds, checks and measures on a machine with an NVIDIA GPU, in nine minutes (--seconds):
#
#   benchmarks/gpu/gpu.sh | tee gpu.jsonl
#
# Prints one JSON object per stage, and a summary last; a failed stage does not stop the others.
# PYTHON is the interpreter with torch (default python3). Missing build packages come from the
# wheels in TENGEN_WHEELS if that is set, so that no network is needed, or else from pip.
# Options are those of benchmarks/gpu/gpu.py.
set -euo pipefail
exec "${PYTHON:-python3}" "$(dirname "$0")/gpu.py" "$@"
