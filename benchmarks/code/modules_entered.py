"""How many modules a reader passes through, counted by a trace of one call.

    python benchmarks/code/modules_entered.py [--json]

Two walks: an environment's step to the loss, which are a turn of the actor and a turn
of the learner of CartPole-v1 by V-trace; and an insert into a store of another process
to the store's engine, as its client makes it. Modules are files of tengen of which a
function was entered; what is entered once when things are made is left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import tengen
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.run import RunDirectory
from tengen.store import Column, Store, StoreConfig, TableConfig

PACKAGE = str(Path(tengen.__file__).parent)


def entered(call: Callable[[], object]) -> list[str]:
    """Returns the modules of tengen of which ``call`` enters a function."""
    found: set[str] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE):
            found.add(str(Path(name).relative_to(PACKAGE)))

    # Threads that the call starts are part of it.
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(found)


def step_to_loss(folder: Path) -> list[str]:
    run = RunDirectory.create_or_resume(folder / "run")
    config = make_config("CartPole-v1", "vtrace", None)
    write_config(run, config)
    context = RoleContext()
    roles = {
        name: make_role(name, config, run, context)
        for name in ("learn", "actor", "export", "gate")
    }
    for name in ("learn", "export", "gate", "actor", "learn"):
        roles[name].turn()

    def step() -> None:
        roles["actor"].turn()
        report = roles["learn"].turn()
        assert report is not None
        assert report["num_steps"] > 0

    try:
        return entered(step)
    finally:
        for role in roles.values():
            role.close()


def insert_to_engine(folder: Path) -> list[str]:
    table = TableConfig(name="replay", columns={"x": Column(dtype="float32")})
    with (
        Store(
            StoreConfig.of([table], memory_bytes=1 << 20, listen="127.0.0.1:0")
        ) as server,
        Store.connect(str(server.address)) as client,
    ):
        replay = client.table("replay")
        replay.insert("a", 0, {"x": np.float32(0)})
        client.flush()

        def insert() -> None:
            replay.insert("a", 1, {"x": np.float32(1)})
            client.flush()

        return entered(insert)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        found = {
            "a step to the loss": step_to_loss(Path(name)),
            "an insert to the engine": insert_to_engine(Path(name)),
        }
    for walk, modules in found.items():
        print(f"{walk}: {len(modules)} modules")
        if not args.json:
            print("  " + " ".join(modules))
    if args.json:
        print(json.dumps({walk: len(modules) for walk, modules in found.items()}))


if __name__ == "__main__":
    main()
