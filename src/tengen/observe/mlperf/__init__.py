"""A run of MLPerf's minigo benchmark: its files, and its log in MLPerf's form."""

from __future__ import annotations

from tengen.observe.mlperf.benchmark import BenchmarkRun, read_benchmark
from tengen.observe.mlperf.log import write_mllog

__all__ = ["BenchmarkRun", "read_benchmark", "write_mllog"]
