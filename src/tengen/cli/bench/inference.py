"""``tengen bench inference``: evaluations per second by net, batch size and threads.

The table has a row for each combination. Measurements of all rows are interleaved, so
that other load on the machine slows all rows equally. On a shared machine, compare
evaluations per CPU-second; those per second require that each thread had a core.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import re
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tengen.cli.bench.random_model import write_random_model
from tengen.config import check, check_range
from tengen.errors import UsageError, did_you_mean
from tengen.inference import InferenceConfig, Runner, allocate, open_backend
from tengen.inference.backend import FloatArray
from tengen.inference.config import BackendName, Precision
from tengen.inference.openvino_backend import is_installed, supported_precisions
from tengen.models import quantise
from tengen.nets import parse_net
from tengen.run import available_cores
from tengen.tensors import BoardSpec

_NUM_PLANES = 4
_NUM_TURNS = 3
_BACKENDS: tuple[BackendName, ...] = ("openvino", "torch")
_MAX_BOARD = 64
_MAX_BATCH_ROWS = 4096
_MAX_THREADS = 256
_MAX_S = 86_400
_NUM_CALIBRATION = 24


@dataclass(frozen=True)
class _Case:
    """The settings of one row of the benchmark's table."""

    net: str
    backend: BackendName
    precision: Precision
    batch_rows: int
    threads: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen bench inference``."""
    parser.add_argument(
        "--nets",
        default="2x32,6x96",
        help="networks, each BLOCKSxCHANNELS, separated by commas (2x32,6x96)",
    )
    parser.add_argument("--board", type=int, default=9, help="board size (9)")
    parser.add_argument(
        "--batches", default="8,32", help="batch sizes, separated by commas (8,32)"
    )
    parser.add_argument(
        "--threads", help="numbers of threads, separated by commas (1 and all cores)"
    )
    parser.add_argument(
        "--backends", help="openvino, torch, or both separated by a comma (all)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=20.0,
        help="seconds for the whole measurement (20)",
    )


def run(namespace: argparse.Namespace) -> dict[str, Any]:
    """Runs the benchmark and returns its report as JSON values.

    Args:
        namespace: The parsed arguments.

    Returns:
        ``name``, ``cores``, ``seconds``, ``cpu_seconds`` and ``rows``. A row has
        ``net``, ``backend``, ``precision``, ``batch_rows`` and ``threads`` and, from
        its fastest repetition, ``evaluations_per_s``, ``evaluations_per_cpu_s`` and
        ``cpus`` (the mean number of busy cores).

    Raises:
        UsageError: An option is invalid, or a backend is not installed.
    """
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    check_range("board", namespace.board, 1, _MAX_BOARD)
    check(
        0 < namespace.seconds <= _MAX_S,
        "seconds",
        namespace.seconds,
        f"must be above 0 and at most {_MAX_S}; 20 suits most machines",
    )
    cases = _cases(namespace)
    nets = {case.net: parse_net(case.net) for case in cases}
    features = BoardSpec(
        num_planes=_NUM_PLANES,
        height=namespace.board,
        width=namespace.board,
        num_actions=namespace.board**2,
        policy_layout="cells",
    )
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for net, config in nets.items():
            path = Path(folder) / net
            write_random_model(path, features.signature, config, with_graph=True)
            chosen = [case for case in cases if case.net == net]
            if any(case.precision == "int8" for case in chosen):
                quantise(path, _random_planes(features, _NUM_CALIBRATION, seed=0))
            turn_s = namespace.seconds / len(cases) / _NUM_TURNS
            rows += _measure(path, features, chosen, turn_s)
    return {
        "name": "inference",
        "cores": available_cores(),
        "seconds": round(time.perf_counter() - start_s, 2),
        "cpu_seconds": round(time.process_time() - start_cpu_s, 2),
        "rows": rows,
    }


def _cases(namespace: argparse.Namespace) -> list[_Case]:
    found: list[BackendName] = ["openvino", "torch"] if is_installed() else ["torch"]
    backends = found
    if namespace.backends is not None:
        backends = [_backend(n) for n in _names("backends", namespace.backends)]
    threads = sorted({1, available_cores()})
    if namespace.threads is not None:
        threads = _counts("threads", namespace.threads, _MAX_THREADS)
    cases = []
    for net, backend, batch_rows, num_threads in itertools.product(
        _names("nets", namespace.nets),
        backends,
        _counts("batches", namespace.batches, _MAX_BATCH_ROWS),
        threads,
    ):
        precisions: Sequence[Precision] = ("fp32", "bf16")
        if backend == "openvino":
            precisions = supported_precisions()
        cases += [
            _Case(net, backend, precision, batch_rows, num_threads)
            for precision in precisions
        ]
    return cases


def _backend(name: str) -> BackendName:
    for known in _BACKENDS:
        if name == known:
            return known
    raise UsageError(f"backends ({name}) is not known; {did_you_mean(name, _BACKENDS)}")


def _names(option: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    check(all(names), option, text, "must be names separated by commas; add one")
    return list(dict.fromkeys(names))


def _counts(option: str, text: str, most: int) -> list[int]:
    names = _names(option, text)
    ok = all(re.fullmatch("[0-9]{1,9}", n) and 1 <= int(n) <= most for n in names)
    check(ok, option, text, f"must be numbers from 1 to {most}; for example 1,2")
    return [int(name) for name in names]


def _measure(
    path: Path, features: BoardSpec, cases: Sequence[_Case], turn_s: float
) -> list[dict[str, Any]]:
    runners = [_bound(path, features, case) for case in cases]
    best: list[dict[str, float]] = [{} for _ in cases]
    for _ in range(_NUM_TURNS):
        for index, case in enumerate(cases):
            turn = _turn(runners[index], case.batch_rows, turn_s)
            if turn["evaluations_per_s"] > best[index].get("evaluations_per_s", 0.0):
                best[index] = turn
    return [
        {**dataclasses.asdict(case), **turn}
        for case, turn in zip(cases, best, strict=True)
    ]


def _bound(path: Path, features: BoardSpec, case: _Case) -> list[Runner]:
    """Returns one runner per thread, after a warm-up batch."""
    config = InferenceConfig(
        backend=case.backend, precision=case.precision, batch_shape="dynamic"
    )
    backend = open_backend(path, config, case.threads)
    runners = []
    for index in range(case.threads):
        planes = _random_planes(features, case.batch_rows, seed=index)
        outputs = allocate(backend.signature.outputs, case.batch_rows)
        runner = backend.bind({"planes": planes}, outputs)
        runner.run(case.batch_rows)
        runners.append(runner)
    return runners


def _random_planes(features: BoardSpec, num_rows: int, seed: int) -> FloatArray:
    shape = (num_rows, features.num_planes, features.height, features.width)
    planes = np.random.default_rng(seed).integers(0, 2, shape).astype(np.float32)
    planes[:, 0] = 1
    return planes


def _turn(
    runners: Sequence[Runner], batch_rows: int, turn_s: float
) -> dict[str, float]:
    """Runs each runner in its own thread for ``turn_s`` seconds; returns the rates."""
    num_calls = [0] * len(runners)
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    end_s = start_s + turn_s

    def work(index: int) -> None:
        # Run at least one batch, so that any measurement has a rate.
        while num_calls[index] == 0 or time.perf_counter() < end_s:
            runners[index].run(batch_rows)
            num_calls[index] += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(runners))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed_s = time.perf_counter() - start_s
    cpu_s = time.process_time() - start_cpu_s
    num_evaluations = sum(num_calls) * batch_rows
    return {
        "evaluations_per_s": round(num_evaluations / elapsed_s, 1),
        "evaluations_per_cpu_s": round(num_evaluations / max(cpu_s, 1e-9), 1),
        "cpus": round(cpu_s / elapsed_s, 2),
    }
