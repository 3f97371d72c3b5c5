"""Builds tengen, then checks and measures it on a GPU in stages; see gpu.sh.

    python benchmarks/gpu/gpu.py --devices cuda:0 --seconds 540

Uses only the standard library, so that a missing package can be reported. Each stage
runs in its own process, is killed when its time limit expires, and prints one line:
``{"stage", "ok", "seconds", "report" or "error"}``.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Module names that a build and a run import.
MODULES = ("numpy", "torch", "safetensors", "onnx", "rich", "nanobind")
# Cases by importance, because the last ones are skipped if time runs out. The outputs
# of the first two are also compared with the CPU's.
MINIGO = "go/19/nosuicide/planes=minigo:minigo:6x64"
CASES = f"{MINIGO} gomoku/15:6x96 gomoku/19:10x128 gomoku/15:10x128 gomoku/19:15x192"
# Search settings of MLPerf's benchmark, for its network.
MINIGO_SEARCH = (
    "--policy minigo --simulations 800 --cheap-simulations 80 --full-share 0.25"
)
TARGET_SHARE = 0.9
TRAIN_SETTINGS = (
    "net.kind=resnet",
    "net.num_blocks=2",
    "net.num_channels=32",
    "learner.optimizer.kind=sgd",
    "agent.actor.games_per_generation=3072",
    "agent.actor.full_simulations=16",
    "store.min_rows=2000",
    "learner.epoch_samples=2000",
    "agent.rating.time_share=0",
    "agent.rating.final_games=0",
)


def sources_sha256() -> str:
    """Returns a hash of all sources that the core is built from."""
    digest = hashlib.sha256((ROOT / "CMakeLists.txt").read_bytes())
    for path in sorted((ROOT / "core").rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0")
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class StageError(Exception):
    """The reason why a stage failed, for its output line."""


class Bench:
    """The stages, their time limits and their folders."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args = args
        self.folder = folder
        self.site = folder / "site"
        self.end_s = time.monotonic() + args.seconds
        self.lines: list[dict[str, Any]] = []

    def stage(
        self, name: str, least_s: float, do: Callable[[], dict[str, object]]
    ) -> bool:
        """Runs a stage if enough time is left, and prints its line."""
        line: dict[str, Any] = {"stage": name}
        start_s = time.monotonic()
        if self.left_s() < least_s:
            line |= {"ok": False, "error": f"left out: {self.left_s():.0f} s are left"}
        else:
            try:
                line |= {"ok": True, "report": do()}
            except Exception as error:
                text = str(error) if isinstance(error, StageError) else repr(error)
                line |= {"ok": False, "error": text}
        line["seconds"] = round(time.monotonic() - start_s, 1)
        self.lines.append(line)
        print(json.dumps(line), flush=True)
        return bool(line["ok"])

    def left_s(self) -> float:
        return float(self.end_s - time.monotonic())

    def run(self, command: list[str], limit_s: float, **variables: str) -> str:
        """Returns a command's output; kills its process group after ``limit_s``."""
        child = self.start(command, **variables)
        try:
            out, err = child.communicate(timeout=min(limit_s, max(1.0, self.left_s())))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
            raise StageError(f"{shown(command)} took too long; {tail(err)}") from None
        if child.returncode != 0:
            raise StageError(
                f"{shown(command)} ended with {child.returncode}; {tail(err or out)}"
            )
        return out

    def start(self, command: list[str], **variables: str) -> subprocess.Popen[str]:
        paths = [str(self.site), os.environ.get("PYTHONPATH", "")]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **variables},
        )

    def run_json(self, command: list[str], limit_s: float) -> dict[str, object]:
        """Returns the JSON object on a command's last line."""
        return dict(json.loads(self.run(command, limit_s).splitlines()[-1]))

    # The stages.

    def environment(self) -> dict[str, object]:
        code = "import torch; print(torch.__version__, torch.cuda.device_count())"
        query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total"]
        found: dict[str, object] = {
            "python": platform.python_version(),
            "cores": len(os.sched_getaffinity(0)),
            "commit": self.optional(["git", "-C", str(ROOT), "rev-parse", "HEAD"]),
            "gpu": self.optional([*query, "--format=csv,noheader"]),
            "torch": self.run([sys.executable, "-c", code], 120).strip(),
        }
        if self.args.devices != "cpu" and str(found["torch"]).endswith(" 0"):
            raise StageError(f"torch sees no GPU: {json.dumps(found)}")
        return found

    def optional(self, command: list[str]) -> str:
        try:
            return self.run(command, 30).strip()
        except (OSError, StageError) as error:
            return f"unknown: {error}"

    def build(self) -> dict[str, object]:
        """Builds the core, or copies a build of the same sources from ``--core``."""
        sources = sources_sha256()
        kept = None if self.args.core is None else Path(self.args.core) / sources
        missing = [name for name in MODULES if not importlib.util.find_spec(name)]
        cmake = tool("cmake")
        missing += ["cmake"] if cmake is None else []
        if missing:
            self.install(missing)
            cmake = cmake or str(self.site / "bin" / "cmake")
        if kept is None or not list(kept.glob("_core*.so")):
            built = self.built(cmake)
        else:
            built = kept
        shutil.copytree(
            ROOT / "src" / "tengen",
            self.site / "tengen",
            ignore=shutil.ignore_patterns("_core*", "__pycache__"),
        )
        for path in built.glob("_core*.so"):
            shutil.copy(path, self.site / "tengen")
            if kept is not None and kept != built:
                kept.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, kept)
        return {"installed": missing, "core": self.run_core()}

    def built(self, cmake: str | None) -> Path:
        """Returns the folder in which the core was built."""
        build, ninja = self.folder / "build", tool("ninja")
        configure = [cmake or "cmake", "-S", str(ROOT), "-B", str(build), "-Wno-dev"]
        configure += [f"-DPython_EXECUTABLE={sys.executable}"]
        if ninja is not None:
            configure += ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
        self.run(configure, 60)
        jobs = str(len(os.sched_getaffinity(0)))
        self.run([configure[0], "--build", str(build), "-j", jobs], self.args.seconds)
        return build

    def install(self, names: list[str]) -> None:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(self.site)]
        if wheels := os.environ.get("TENGEN_WHEELS"):
            pip += [
                "--no-index",
                "--no-deps",
                "--find-links",
                str(Path(wheels).resolve()),
            ]
        else:
            pip += ["-c", str(ROOT / "constraints.txt")]
        self.run([*pip, *names], 120)

    def run_core(self) -> str:
        code = "import tengen._core as core; print(core.__file__)"
        return self.run([sys.executable, "-c", code], 60).strip()

    def check(self) -> dict[str, object]:
        script = str(ROOT / "benchmarks" / "gpu" / "gpu_check.py")
        command = [sys.executable, script, "--devices", self.args.devices]
        cases = " ".join(self.args.cases.split()[:2])
        report = self.run_json([*command, "--cases", cases], 150)
        if report["errors"]:
            raise StageError(json.dumps(report))
        return report

    def share(self, case: str) -> dict[str, object]:
        game, net = case.split(":", 1)
        command = [sys.executable, "-m", "tengen", "bench", "selfplay", "--json"]
        command += ["--devices", self.args.devices, "--game", game, "--net", net]
        if net.startswith("minigo:"):
            command += MINIGO_SEARCH.split()
        command += ["--rounds", "3", "--round-s", str(self.args.round_s)]
        return self.run_json(command, 40 + 12 * self.args.round_s)

    def learner(self) -> dict[str, object]:
        """Measures learner steps with the network of MLPerf's minigo."""
        game, net = MINIGO.split(":", 1)
        command = [sys.executable, "-m", "tengen", "bench", "learner", "--json"]
        command += ["--game", game, "--net", net, "--device", self.args.devices]
        command += ["--batch", str(self.args.batch), "--shards", "1", "--games", "32"]
        return self.run_json(command, 90)

    def environments(self) -> dict[str, object]:
        """Trains on Pong for half a minute; the simulators run on the CPU."""
        if not importlib.util.find_spec("ale_py"):
            raise StageError("ale_py is not installed, so Pong was not tried")
        out, spare = self.folder / "pong", len(os.sched_getaffinity(0)) - 4
        command = [sys.executable, "-m", "tengen", "train", "atari/Pong", "--json"]
        command += ["--agent", "vtrace", "--actors", str(max(1, spare))]
        command += ["--devices", self.args.devices, "--out", str(out)]
        return self.run_json([*command, "--minutes", "0.5"], 120)

    def train(self) -> dict[str, object]:
        """Trains, kills all processes of the run, and resumes it.

        The kill happens after some learner steps, or after twice ``--train-s``.
        """
        out = self.folder / "run"
        command = [sys.executable, "-m", "tengen", "train", "gomoku/9", "--json"]
        command += ["--devices", self.args.devices, "--out", str(out)]
        for setting in [*TRAIN_SETTINGS, *self.args.set]:
            command += ["--set", setting]
        seconds = self.args.train_s
        child = self.start([*command, "--minutes", "30"])
        end_s = time.monotonic() + 2 * seconds
        while time.monotonic() < end_s and child.poll() is None:
            time.sleep(0.2)
            if progress(out)["steps"]:
                break
        if child.poll() is not None:
            raise StageError(f"ended by itself; {tail(child.communicate()[1])}")
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        killed = progress(out)
        try:
            again = [*command, "--minutes", str(seconds / 60)]
            resumed = self.run_json(again, 4 * seconds)
        except StageError as error:
            raise StageError(
                f"{error}; killed with {killed}, then {progress(out)}"
            ) from None
        report = {"killed": killed, "resumed": progress(out), "last": resumed}
        if not killed["generations"] or not killed["steps"]:
            raise StageError(f"nothing was learned before the kill; {report}")
        for name, before in killed.items():
            if progress(out)[name] < before:
                raise StageError(f"{name} went back; {report}")
        if progress(out)["generations"] == killed["generations"]:
            raise StageError(f"nothing was played after the kill; {report}")
        return report


def progress(run: Path) -> dict[str, int]:
    """Returns a run's numbers of generations, models and learner steps."""
    states = sorted(run.glob("checkpoints/*/state.json"))
    return {
        "generations": len(list(run.glob("experience/*/*/*.npz"))),
        "models": len(list(run.glob("models/*/meta.json"))),
        "steps": json.loads(states[-1].read_text())["num_steps"] if states else 0,
    }


def summed_up(lines: list[dict[str, Any]]) -> dict[str, object]:
    """Returns the last line: whether all stages passed, and their shares."""
    shares = {
        line["stage"].removeprefix("share "): line["report"]["share_of_backend"]
        for line in lines
        if line["stage"].startswith("share ") and line["ok"]
    }
    ok = all(line["ok"] for line in lines)
    # A run without measurements does not reach the target.
    reached = bool(shares) and min(shares.values()) >= TARGET_SHARE
    report = {"shares": shares, "target": TARGET_SHARE, "reached": reached}
    return {"stage": "summary", "ok": ok, "report": report}


def tool(name: str) -> str | None:
    """Returns the path of a program in the interpreter's folder or on PATH, or None."""
    beside = shutil.which(name, path=str(Path(sys.executable).parent))
    return beside or shutil.which(name)


def shown(command: list[str]) -> str:
    return " ".join(command[:6])


def tail(text: str) -> str:
    return " | ".join(text.strip().splitlines()[-6:])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the stages; returns 0 if all pass."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", default="cuda:0", help="(cuda:0)")
    parser.add_argument("--seconds", type=float, default=530.0, help="in all (530)")
    parser.add_argument("--cases", default=CASES, help="GAME:NET ...")
    parser.add_argument("--round-s", type=float, default=6.0, help="of a share (6)")
    parser.add_argument(
        "--train-s", type=float, default=40.0, help="after the kill (40)"
    )
    parser.add_argument("--batch", type=int, default=4096, help="of a step (4096)")
    parser.add_argument(
        "--core", help="folder that keeps built cores; one of these sources is taken"
    )
    parser.add_argument("--set", action="append", default=[], help="for the training")
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="tengen-gpu-") as folder:
        bench = Bench(args, Path(folder))
        ready = bench.stage("environment", 30, bench.environment)
        if ready and bench.stage("build", 60, bench.build):
            cases = args.cases.split()
            bench.stage("check", 30, bench.check)
            for case in cases[:2]:
                bench.stage(f"share {case}", 40, partial(bench.share, case))
            bench.stage("train", 3.5 * args.train_s, bench.train)
            bench.stage("learner", 40, bench.learner)
            bench.stage("environments", 60, bench.environments)
            for case in cases[2:]:
                bench.stage(f"share {case}", 40, partial(bench.share, case))
    summary = summed_up(bench.lines)
    print(json.dumps(summary), flush=True)
    return 0 if summary["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
