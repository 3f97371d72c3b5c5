"""What a newer model in mid-game costs: one generation with switches, one without.

    python benchmarks/selfplay/model_switch.py EVERY_S

Plays 96 games of gomoku/9 (4x64 in bf16, 64 simulations, 32 games at once on two
threads) from a random model, which is published again under the next number every so
many seconds; 0 never. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import threading
import time
from pathlib import Path

from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, read_config, write_config
from tengen.run import RunDirectory

SETTINGS = (
    "net.num_blocks=4",
    "net.num_channels=64",
    "agent.actor.games_per_generation=96",
    "agent.actor.full_simulations=64",
    "agent.actor.num_slots=16",
    "inference.precision=bf16",
    "inference.backend=openvino",
    "inference.batch_shape=dynamic",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("every_s", type=float, metavar="EVERY_S", help="0: never")
    measure(parser.parse_args().every_s)


def measure(every_s: float) -> None:
    """Makes a run with a model, and plays."""
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory.create_or_resume(Path(folder) / "run")
        write_config(run, override(make_config("gomoku/9", None, None), SETTINGS))
        for name in ("learn", "export", "gate"):
            role = make_role(name, read_config(run), run, RoleContext())
            role.turn()
            role.close()
        over = threading.Event()
        if every_s > 0:
            threading.Thread(target=_publish, args=(run, every_s, over)).start()
        context = RoleContext(num_threads=2, follow_models=every_s > 0)
        role = make_role("selfplay", read_config(run), run, context)
        start_s, cpu_s = time.monotonic(), time.process_time()
        report = role.turn()
        over.set()
        role.close()
        assert report is not None
        print(
            json.dumps(
                {
                    "switches": len(report.get("models", [0])) - 1,
                    "evaluations": report["num_evaluations"],
                    "plies": report["num_plies"],
                    "cpu_s": round(time.process_time() - cpu_s, 2),
                    "seconds": round(time.monotonic() - start_s, 2),
                }
            )
        )


def _publish(run: RunDirectory, every_s: float, over: threading.Event) -> None:
    def copy(path: Path) -> None:
        shutil.copytree(run.models.entry(0), path, dirs_exist_ok=True)

    number = 0
    while not over.wait(every_s):
        number += 1
        run.models.publish(number, copy)


if __name__ == "__main__":
    main()
