"""How long each part of a cluster takes on this machine, for ``simulate_cluster.py``.

Times are CPU-seconds of the project's own benchmarks, so that what else the machine
does counts little: ``tengen bench store``, ``learner`` and ``selfplay``,
``simulated_actors.py`` for the server's own work a request, ``many_actors.py`` for
actors and learner. A network's batches of several sizes are timed here, and a line
through them (a batch, and each of its rows) is the service time of inference.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
ROWS = (1, 8, 32, 128, 512)
ITEM_STEPS = 20
CALIBRATED = {"many_actors.py": 30, "simulated_actors.py": 300}
"""With how many actors each script measures service times; no check of
``simulate_validate.py`` has as many of the same script."""
_TURNS = 5


def measure(path: Path) -> dict[str, Any]:
    """Returns the service times; takes some minutes.

    Args:
        path: Gets each part when it is measured. Parts that it has are kept, so that a
            call that was interrupted goes on; remove it to measure all anew.
    """
    times: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for name, part in PARTS.items():
        if name not in times:
            times[name] = part() | {"commit": commit()}
            path.write_text(json.dumps(times, indent=2) + "\n")
    return times


def run_times() -> dict[str, float]:
    """Returns CPU-seconds of a step by process, of actors on this host."""
    number = str(CALIBRATED["many_actors.py"])
    found = script("many_actors.py", "--actors", number, "--seconds", "8")
    spent = {role: ms / 1000 for role, ms in found["cpu_ms_per_step"].items()}
    return {
        "cpu_s_per_step": spent["actor"],
        "inference_cpu_s_per_step": spent["inference"],
        "learner_cpu_s_per_item": ITEM_STEPS * spent["learn"],
        "runner_cpu_s_per_step": spent["runner"],
        "cores_of_others": found["cores_of_others"],
    }


def inference_times() -> dict[str, Any]:
    """Returns CPU-seconds of the server's own work a request, and of networks."""
    number = str(CALIBRATED["simulated_actors.py"])
    words = ("--actors", number, "--rounds", "2", "--seconds", "1")
    served = script("simulated_actors.py", *words)
    nets: dict[str, dict[str, float]] = {
        name: net_times(*spec) for name, spec in NETS.items()
    }
    own_s = nets["mlp"]["row_s"]
    for one in nets.values():
        # Learning costs what the rows do, forward and back.
        one["learner_factor"] = max(1.0, one["row_s"] / own_s)
    request_s = served["server"]["cpu_s_per_1000"] / 1000
    return {"cpu_s_per_request": request_s, "nets": nets}


def selfplay_times() -> dict[str, Any]:
    """Returns evaluations a CPU-second, search included, and a durable append."""
    played = bench("selfplay", "--rounds", "1", "--round-s", "4", "--cores", "1")
    return {
        "evaluations_per_core_s": played["evals_per_cpu_s"],
        "disk_game_s": fsync_s(),
        "net": played["net"],
        "game": played["game"],
        "precision": played["precision"],
    }


def game_learner_times() -> dict[str, Any]:
    """Returns rows that a learner of games takes a CPU-second."""
    learned = bench("learner", "--seconds", "4", "--games", "16", "--threads", "1")
    return {
        "rows_per_core_s": learned["rows_per_cpu_s"],
        "machine": learned["machine"],
    }


NETS = {
    "mlp": ("timed_env:Timed", "vtrace"),
    "nature": ("atari/Pong", "vtrace"),
}


def net_times(task: str, agent: str) -> dict[str, float]:
    """Returns CPU-seconds of a batch and of each of its rows, with random weights."""
    import tempfile

    import torch
    from safetensors.torch import save_file

    from tengen import games
    from tengen.config import to_dict
    from tengen.inference import RowArrays, open_backend
    from tengen.overrides import override
    from tengen.recipes import make_config

    games.allow(task)
    config = override(
        make_config(task, agent, None),
        ["inference.backend=torch", "inference.precision=fp32"],
    )
    asked = config.agent.signature(config.task)
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        net = config.net.build(asked)
        save_file(net.state_dict(), Path(folder) / "weights.safetensors")
        meta = {"net": to_dict(config.net), "signature": to_dict(net.signature)}
        (Path(folder) / "meta.json").write_text(json.dumps(meta))
        backend = open_backend(Path(folder), config.inference, 1)
        arrays = RowArrays(backend.signature, max(ROWS))
        runner = backend.bind(arrays.inputs, arrays.outputs, arrays.state)
        spent = {rows: batch_s(runner, rows) for rows in ROWS}
    return line_through(spent)


def batch_s(runner: Any, rows: int) -> float:
    """Returns the CPU-seconds of a batch, the least of some turns."""
    runner.run(rows)
    found = []
    for _ in range(_TURNS):
        begun_s, number, until = time.process_time(), 0, time.monotonic() + 0.2
        while time.monotonic() < until:
            runner.run(rows)
            number += 1
        found.append((time.process_time() - begun_s) / number)
    return min(found)


def line_through(spent: dict[int, float]) -> dict[str, float]:
    """Returns ``batch_s`` and ``row_s`` that miss all sizes by as equal shares."""
    rows = np.array(list(spent))
    seconds = np.array(list(spent.values()))
    design = np.stack([np.ones_like(rows), rows], 1) / seconds[:, None]
    (first, each), *_ = np.linalg.lstsq(design, np.ones(len(rows)), rcond=None)
    fit = first + each * rows
    return {
        "batch_s": max(0.0, float(first)),
        "row_s": float(each),
        "worst_miss": float(np.abs(fit / seconds - 1).max()),
    }


def store_times() -> dict[str, float]:
    """Returns CPU-seconds an item and a byte, of client and server together."""
    found = {}
    for name in ("sac", "impala"):
        words = ("--workload", name, "--memory-gb", "0.2", "--seconds", "0.4")
        (row,) = bench("store", *words)["rows"]
        found[row["item_bytes"]] = row
    (small, small_row), (large, large_row) = sorted(found.items())
    times = {}
    # An actor inserts its items one at a time; a learner draws batches.
    rates = {"insert": "insert_1s/cpu_s", "sample": "samples/cpu_s"}
    for verb, rate in rates.items():
        few_s, many_s = 1 / small_row[rate], 1 / large_row[rate]
        byte_s = max(0.0, (many_s - few_s) / (large - small))
        times[f"{verb}_byte_s"] = byte_s
        times[f"{verb}_item_s"] = max(0.0, few_s - byte_s * small)
    return times


def fsync_s(number: int = 30) -> float:
    """Returns seconds of a small durable append to a file of this machine's disk."""
    import os
    import tempfile

    with tempfile.NamedTemporaryFile(dir=HERE) as file:
        begun_s = time.perf_counter()
        for _ in range(number):
            file.write(bytes(4000))
            file.flush()
            os.fsync(file.fileno())
        return (time.perf_counter() - begun_s) / number


def bench(*words: str) -> dict[str, Any]:
    """Returns the report of ``tengen bench``."""
    return _report([sys.executable, "-m", "tengen", "bench", *words, "--json"])


def script(name: str, *words: str, before: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the report of a script beside this one.

    Args:
        name: Its file.
        words: Its options.
        before: The words of a program that runs it.
    """
    return _report([*before, sys.executable, str(HERE / name), *words, "--json"])


def commit() -> str:
    """Returns the commit of this checkout."""
    words = ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True).stdout.strip()


def _report(words: list[str]) -> dict[str, Any]:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words[1:])} failed: {done.stderr[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "actor": run_times,
    "inference": inference_times,
    "store": store_times,
    "selfplay": selfplay_times,
    "game_learner": game_learner_times,
}
