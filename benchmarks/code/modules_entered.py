"""Counts the files and functions that a call enters, from a trace.

    python benchmarks/code/modules_entered.py [--only WALK ...] [--json]

Each walk, a traced call, runs in its own process. Only tengen's Python functions count,
not the C++ core or code that runs while a module is imported. The last three walks
exclude functions that run only once, during construction:

- ``train_to_child``: ``tengen.train("CartPole-v1", agent="ppo", launch="local")`` until
  it starts the first process of a role.
- ``train_to_step``: the same with ``launch="inline"`` until the first optimizer step.
- ``frame_to_loss``: one turn of the actor and one of the learner, Pong with V-trace.
- ``leaf_to_loss``: one generation of go/5, and one turn of the learner.
- ``remote_insert``: an insert and a flush by a client of a store over TCP.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np

import tengen
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.run import RunDirectory
from tengen.store import Column, Store, StoreConfig, TableConfig

PACKAGE = str(Path(tengen.__file__).parent)
Entered = set[tuple[str, str]]
"""File and name of each entered function."""


class Trace:
    """A trace of the tengen functions that this process enters, in all threads."""

    def __init__(self) -> None:
        self.found: Entered = set()
        self._importing = threading.local()
        self._telling = threading.Lock()
        threading.setprofile(self._take)
        sys.setprofile(self._take)

    def end(self) -> Entered:
        """Ends the trace and returns the functions entered."""
        sys.setprofile(None)
        threading.setprofile(None)
        return set(self.found)

    def tell_and_exit(self) -> NoReturn:
        """Prints the trace and exits immediately, without cleanup."""
        self._telling.acquire()  # two threads may start a process at the same time
        print(json.dumps(sorted(self.end())), flush=True)
        os._exit(0)

    def _take(self, frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if event not in ("call", "return") or not name.startswith(PACKAGE):
            return
        depth = getattr(self._importing, "depth", 0)
        if frame.f_code.co_name == "<module>":
            self._importing.depth = depth + (1 if event == "call" else -1)
        elif depth == 0:
            path = str(Path(name).relative_to(PACKAGE))
            self.found.add((path, frame.f_code.co_qualname))


def train_to_child(folder: Path) -> Entered:
    def stop(event: str, arguments: tuple[Any, ...]) -> None:
        # Ignore processes that libraries start, for example to query the system.
        is_child = event == "subprocess.Popen" and any(
            str(word).startswith("tengen.") for word in arguments[1]
        )
        if is_child or event in ("os.fork", "os.posix_spawn"):
            trace.tell_and_exit()

    trace = Trace()
    sys.addaudithook(stop)
    cartpole(folder, "local")
    raise AssertionError("no process was started")


def train_to_step(folder: Path) -> Entered:
    # The learner runs in a child: sitecustomize.py starts the trace in each process.
    (folder / "sitecustomize.py").write_text(
        "import runpy, sys\n"
        "if 'tengen.launch.child' in sys.orig_argv:\n"
        f"    runpy.run_path({__file__!r})['trace_learner']({str(folder)!r})\n"
    )
    os.environ["PYTHONPATH"] = str(folder)
    told = folder / "told.json"

    def wait() -> None:
        while not told.exists():
            time.sleep(0.05)
        trace.found |= {(path, name) for path, name in json.loads(told.read_text())}
        trace.tell_and_exit()

    threading.Thread(target=wait, daemon=True).start()
    trace = Trace()
    cartpole(folder, "inline")
    raise AssertionError("no step was made")


def trace_learner(folder: str) -> None:
    """Traces this process until its first optimizer step; writes told.json."""

    def wait() -> None:
        while ("learners/optimizer.py", "Optimizer.step") not in trace.found:
            time.sleep(0.001)
        part = Path(folder, "part.json")
        part.write_text(json.dumps(sorted(trace.end())))
        part.rename(Path(folder, "told.json"))
        os._exit(0)  # ends the parent process too

    trace = Trace()
    threading.Thread(target=wait, daemon=True).start()


def cartpole(folder: Path, launch: str) -> None:
    tengen.train(
        "CartPole-v1",
        agent="ppo",
        launch=launch,
        frames=100_000,
        threads=1,
        out=folder / "run",
    )


def frame_to_loss(folder: Path) -> Entered:
    return turns(folder, "atari/Pong", "vtrace", "actor", [])


def leaf_to_loss(folder: Path) -> Entered:
    settings = ["agent.actor.games_per_generation=2", "store.min_rows=1"]
    return turns(folder, "go/5", None, "selfplay", settings)


def turns(
    folder: Path, task: str, agent: str | None, acting: str, settings: list[str]
) -> Entered:
    """Traces one turn of the acting role, and one learner turn with a step."""
    run = RunDirectory.create_or_resume(folder / "run")
    config = override(make_config(task, agent, None), settings)
    write_config(run, config)
    context = RoleContext()
    names = ("learn", "export", "gate", acting)
    roles = {name: make_role(name, config, run, context) for name in names}

    def turn() -> None:
        roles[acting].turn()
        while (report := roles["learn"].turn()) is None or not report["num_steps"]:
            roles[acting].turn()

    try:
        for name in ("learn", "export", "gate"):
            roles[name].turn()
        turn()
        trace = Trace()
        turn()
        return trace.end()
    finally:
        for role in roles.values():
            role.close()


def remote_insert(folder: Path) -> Entered:
    table = TableConfig(name="replay", columns={"x": Column(dtype="float32")})
    config = StoreConfig.of([table], memory_bytes=1 << 20, listen="127.0.0.1:0")
    with Store(config) as server, Store.connect(str(server.address)) as client:
        replay = client.table("replay")
        replay.insert("a", 0, {"x": np.float32(0)})
        client.flush()

        trace = Trace()
        replay.insert("a", 1, {"x": np.float32(1)})
        client.flush()
        return trace.end()


WALKS = {
    walk.__name__: walk
    for walk in (
        *(train_to_child, train_to_step),
        *(frame_to_loss, leaf_to_loss, remote_insert),
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=WALKS, action="append")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--walk", choices=WALKS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.walk:
        print(json.dumps(sorted(WALKS[args.walk](Path(args.folder)))))
        return
    report = {}
    for walk in args.only or WALKS:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, __file__, "--walk", walk, "--folder", folder],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
        functions = json.loads(done.stdout.splitlines()[-1])
        files = sorted({path for path, _ in functions})
        report[walk] = {"functions": len(functions), "files": len(files)}
        if not args.json:
            print(f"{walk}: {len(functions)} functions in {len(files)} files")
            print("  " + " ".join(files))
    if args.json:
        print(json.dumps(report))


if __name__ == "__main__":
    main()
