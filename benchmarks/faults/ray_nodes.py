"""What becomes of a run when a host of its Ray cluster is lost, on one machine.

A head without cores and two nodes of two cores each run ``tengen train ... --launch
ray``. Some seconds after the first row the node of the role that acts is removed
without warning, all of its processes by SIGKILL, and soon after another one is added.
Once the command has ended, what it kept is counted. Each game that was durable before
the loss must be there as it was, and each index of a generation once, with none left
out. Of environments no actor may count fewer frames than before, and all together must
count the budget, with less than a tenth above it: an actor looks at the budget between
turns, and the frames of a turn that is cut short count beside it.

    python benchmarks/faults/ray_nodes.py
    python benchmarks/faults/ray_nodes.py --only cartpole-r2d2 --lose learn
    python benchmarks/faults/ray_nodes.py --only cartpole-r2d2 --undisturbed

The first makes all rows; in the second the learner's node is lost, in the third none.

It prints one JSON object a row and returns 1 where something was missed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tengen import _core
from tengen.errors import RunError
from tengen.experience import SegmentReader
from tengen.experience.games.files import experience_files
from tengen.experience.games.journal import read_journal
from tengen.observe import read_events, read_hosts
from tengen.roles import read_config
from tengen.run import RunDirectory
from tengen.run.actor_counts import read_actor_totals

_LOOK_S = 0.1
_ADD_S = 5.0
"""From the loss of a node to the next one."""
_WAIT_S = 1200.0
"""A row takes less, or hangs."""
_OVER = 1.1
_CORES = 2
_HEAD = {"num_cpus": 0, "include_dashboard": False}

Kept = dict[tuple[int, int], Any]
"""By generation and index what a game was, or by actor and 0 its frames."""


class Row(NamedTuple):
    """A command, and what it is to have kept."""

    words: tuple[str, ...]
    acting: str
    frames: int = 0
    """Of the budget; 0 of games."""
    lose_s: float = 20.0
    """From the first row to the loss."""


ROWS = {
    "go7": Row(
        ("go/7", "--minutes", "3", "--set", "agent.actor.games_per_generation=40"),
        "selfplay",
        lose_s=25.0,
    ),
    "cartpole-r2d2": Row(
        ("CartPole-v1", "--agent", "r2d2", "--actors", "2", "--frames", "150k"),
        "actor",
        frames=150_000,
    ),
    "minatar-ppo": Row(
        ("minatar/Breakout", "--agent", "ppo", "--actors", "2", "--frames", "200k"),
        "actor",
        frames=200_000,
    ),
}


def main() -> int:
    """Returns 1 where a row missed something."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=sorted(ROWS), default=[])
    parser.add_argument("--undisturbed", action="store_true", help="no node is lost")
    parser.add_argument("--lose", metavar="ROLE", help="whose node (what acts)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    is_missed = False
    for name in args.only or list(ROWS):
        row = ROWS[name]
        role = None if args.undisturbed else args.lose or row.acting
        with tempfile.TemporaryDirectory(prefix="ray-") as folder:
            report = _of_row(row, role, args.seed, Path(folder))
        print(json.dumps({"row": name, "lost": role, **report}), flush=True)
        is_missed |= bool(report["missed"])
    return int(is_missed)


def _of_row(row: Row, role: str | None, seed: int, folder: Path) -> dict[str, Any]:
    # Of its own: no other command of this host is to join the cluster.
    os.environ["RAY_TMPDIR"] = str(folder)
    # Nodes begin slowly where other work has the cores.
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")
    # What other work there is does not come before the roles.
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=_HEAD)
    try:
        nodes = [cluster.add_node(num_cpus=_CORES) for _ in range(2)]
        run = RunDirectory(folder / "run")
        command = [sys.executable, "-P", "-m", "tengen", "train", *row.words]
        command += ["--launch", "ray", "--out", str(run.path), "--seed", str(seed)]
        command += ["--set", f"launch.address={cluster.address}"]
        start_s = time.monotonic()
        with open(folder / "printed", "wb") as printed:
            process = subprocess.Popen(command, stdout=printed, stderr=printed)
        limit = threading.Timer(_WAIT_S, process.kill)
        limit.start()
        look = frames if row.frames else games
        while process.poll() is None and not any(look(run).values()):
            time.sleep(_LOOK_S)
        first_row_s = time.monotonic() - start_s
        before: Kept = {}
        is_lost = role is None
        if role is not None and _lasts(process, row.lose_s):
            for node in nodes:
                if node.node_id.startswith(_node_of(run, role)):
                    before = look(run)
                    cluster.remove_node(node, allow_graceful=False)
                    is_lost = True
            if _lasts(process, _ADD_S):
                cluster.add_node(num_cpus=_CORES)
        code = process.wait()
        limit.cancel()
        wall_s = time.monotonic() - start_s
    finally:
        cluster.shutdown()
    if code != 0:
        print((folder / "printed").read_text()[-2000:], file=sys.stderr)
    missed = [] if code == 0 else [f"exit code {code}"]
    missed += [] if is_lost else ["it ended before a node was lost"]
    found: dict[str, Any] = {"first_row_s": round(first_row_s, 1), "exit_code": code}
    found["wall_s"] = round(wall_s, 1)
    deaths = [
        {"role": event["role"], "how": event["how"]}
        for number in run.incarnations("train")
        for event in read_events(run.events_path("train", number))
        if event["kind"] == "death"
    ]
    if role is not None and not deaths:
        missed.append("no death is named in the events")
    found |= {"deaths": deaths, "before_the_loss": len(before)}
    if row.frames:
        counts, wrong = of_frames(run, row.frames, before)
    else:
        config = read_config(run)
        asked = config.agent.schedule(config).games_per_turn
        counts, wrong = of_games(run, asked, before)
    found |= counts
    if row.frames and code == 0:
        found["mean_return"] = _score(run)
    shutil.rmtree(run.path)
    return {**found, "missed": missed + wrong}


def _lasts(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Waits; returns whether the command still goes on then."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def _node_of(run: RunDirectory, role: str) -> str:
    """Returns how the id of the node begins that a process with a role is on."""
    hosts = read_hosts(run)
    assert hosts is not None
    places = [one.place for one in hosts.places if role in one.roles]
    if not places:
        raise SystemExit(f"role ({role}) has no place in this row")
    return places[-1].removeprefix("node ")


def of_games(
    run: RunDirectory, asked: int, before: Kept
) -> tuple[dict[str, Any], list[str]]:
    """Counts games, once nobody plays.

    Args:
        run: The run.
        asked: Games of a generation.
        before: Those that were durable before the loss.

    Returns:
        How many there are, and what was lost, doubled or changed.
    """
    missed: list[str] = []
    found: Kept = {}
    sealed: dict[int, list[int]] = {}
    for path, game, content in _recorded(run):
        if game in found:
            missed.append(f"game {game} is there twice")
        found[game] = content
        if path.suffix == ".npz":
            sealed.setdefault(game[0], []).append(game[1])
    for generation, indices in sealed.items():
        if sorted(indices) != list(range(asked)):
            missed.append(f"generation {generation} has not the games 0 to {asked - 1}")
    numbers = sorted({generation for generation, _ in found})
    if numbers != list(range(1, len(numbers) + 1)):
        missed.append(f"generations are not one after the other, {numbers}")
    changed = [game for game in before if found.get(game) != before[game]]
    if changed:
        missed.append(f"games that were durable are lost or changed, {changed}")
    return {"games": len(found), "generations": len(sealed)}, missed


def of_frames(
    run: RunDirectory, budget: int, before: Kept
) -> tuple[dict[str, Any], list[str]]:
    """Counts frames, once nobody acts.

    Args:
        run: The run.
        budget: Frames.
        before: What each actor counted before the loss.

    Returns:
        How many there are, and what was lost or doubled.
    """
    missed: list[str] = []
    found = frames(run)
    fewer = [
        one for (one, _), count in before.items() if found.get((one, 0), 0) < count
    ]
    if fewer:
        missed.append(f"actors count fewer frames than before, {fewer}")
    total = sum(found.values())
    if not budget <= total <= _OVER * budget:
        missed.append(f"{total} frames of a budget of {budget}")
    return {"frames": total, "budget": budget}, missed


def games(run: RunDirectory) -> Kept:
    """Returns what each game that is durable now holds."""
    return {game: content for _, game, content in _recorded(run)}


def frames(run: RunDirectory) -> Kept:
    """Returns how many frames each actor counts now."""
    numbers = [int(path.name) for path in run.actors.glob("[0-9]*")]
    return {(number, 0): read_actor_totals(run, number)[0] for number in numbers}


def _recorded(run: RunDirectory) -> Iterator[tuple[Path, tuple[int, int], str]]:
    """Yields where each game is, which it is, and what it holds.

    Of a run that goes on journals come first: what is sealed meanwhile comes then.
    """
    for suffix, read in (("journal", _in_journal), ("npz", _in_segment)):
        for path in experience_files(run.experience, suffix):
            try:
                columns = read(path)
            except (OSError, RunError):
                if path.exists():
                    raise
                continue
            yield from _each(path, columns)


def _in_journal(path: Path) -> Mapping[str, Any]:
    frames = read_journal(path).frames
    return _core.merge_games(frames, int(path.stem)) if frames else {}


def _in_segment(path: Path) -> Mapping[str, Any]:
    with SegmentReader(path) as reader:
        return reader.game_columns()


def _each(
    path: Path, columns: Mapping[str, Any]
) -> Iterator[tuple[Path, tuple[int, int], str]]:
    at = 0
    for place, num_plies in enumerate(columns.get("num_plies", ())):
        moves = columns["action"][at : at + num_plies].tolist()
        at += num_plies
        content = hashlib.sha256(json.dumps(moves).encode()).hexdigest()
        yield path, (int(path.stem), int(columns["game_index"][place])), content


def _score(run: RunDirectory) -> float:
    """Returns what the last model reaches in twenty episodes."""
    words = ["eval", str(run.path), "--episodes", "20", "--json"]
    played = subprocess.run(
        [sys.executable, "-P", "-m", "tengen", *words],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(json.loads(played.stdout.splitlines()[-1])["mean_return"])


if __name__ == "__main__":
    sys.exit(main())
