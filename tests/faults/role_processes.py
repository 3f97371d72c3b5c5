"""Processes of a run's roles that a test kills, and checks of the run afterwards."""

from __future__ import annotations

import hashlib
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tengen import _core, cli
from tengen.experience import SegmentReader
from tengen.experience.games.journal import read_journal
from tengen.experience.games.manifest import Manifest
from tengen.experience.rows.shuffled_files import (
    read_shard,
    read_turn,
    read_window_state,
    shard_name,
)
from tengen.learners.checkpoint import SavedModel, read_extra, read_model
from tengen.models import load_model
from tengen.observe.status import read_status
from tengen.run import RunDirectory, find_files
from tests.integration.runs import wait_for

ROLES = ("selfplay", "selfplay", "learn", "export", "gate")
SHUFFLED_ROLES = (*ROLES, "shuffle")
BATCH_ROWS = 32
GAMES = 24
SETTINGS = (
    f"agent.actor.games_per_generation={GAMES}",
    "agent.actor.full_simulations=48",
    "agent.actor.cheap_simulations=12",
    "agent.actor.full_probability=0.5",
    "agent.actor.snapshot_s=0.1",
    "agent.actor.num_slots=4",
    "agent.actor.cache_mib=0",
    "store.min_rows=50",
    "store.limiter.samples_per_row=1",
    f"learner.batch_size={BATCH_ROWS}",
    "inference.precision=fp32",
    "inference.backend=openvino",
    "inference.batch_shape=dynamic",
)

Game = tuple[int, int]
"""A game's generation, and its index in the generation."""


def make_run(out: Path, *settings: str) -> RunDirectory:
    """Creates a run without playing games."""
    words = ["train", "tictactoe", "--games", "0", "--out", str(out)]
    for setting in (*SETTINGS, *settings):
        words += ["--set", setting]
    assert cli.main(words) == 0
    return RunDirectory(out)


@dataclass
class RoleProcesses:
    """The role processes of one run; each place in ``roles`` has one current process.

    The folder ``<run>-logs`` has their output.
    """

    run: RunDirectory
    roles: tuple[str, ...] = ROLES
    num_kills: list[int] = field(default_factory=list)
    durable: dict[Game, str] = field(default_factory=dict)
    """The games that were in a journal after a kill, with hashes of their contents."""

    def __post_init__(self) -> None:
        self.num_kills = [0] * len(self.roles)
        self._logs = Path(f"{self.run.path}-logs")
        self._logs.mkdir(exist_ok=True)
        self._children: list[subprocess.Popen[bytes]] = []
        self._children = [self._start(place) for place in range(len(self.roles))]

    def _start(self, place: int) -> subprocess.Popen[bytes]:
        role = self.roles[place]
        command = [sys.executable, "-m", "tengen", role, str(self.run.path)]
        with open(self._logs / f"{role}-{place}.log", "ab") as log:
            return subprocess.Popen(
                [*command, "--threads", "1"],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def said(self, place: int) -> str:
        """Returns the output of all processes of a place so far."""
        return (self._logs / f"{self.roles[place]}-{place}.log").read_text()

    def check_alive(self) -> None:
        """Checks that all processes are running."""
        for place, child in enumerate(self._children):
            assert child.poll() is None, self.said(place)[-2000:]

    def kill(self, place: int) -> None:
        """Kills a process, records the durable games and restarts the process."""
        child = self._children[place]
        assert child.poll() is None, self.said(place)[-2000:]
        child.kill()
        child.wait()
        self.num_kills[place] += 1
        if self.roles[place] == "selfplay":
            for _, game, content in games_in_journals(self.run):
                assert self.durable.setdefault(game, content) == content
        self._children[place] = self._start(place)

    def kill_at_random(
        self, rng: random.Random, num_kills: dict[str, int], most_s: float
    ) -> None:
        """Kills processes in random order, at random instants.

        Args:
            rng: The generator of the order and the instants.
            num_kills: The number of kills of each process of a role, by role.
            most_s: The maximum number of seconds between two kills.
        """
        order = [
            place
            for place, role in enumerate(self.roles)
            for _ in range(num_kills[role])
        ]
        rng.shuffle(order)
        for place in order:
            try:
                self._children[place].wait(rng.uniform(0.0, most_s))
            except subprocess.TimeoutExpired:
                self.kill(place)
            else:
                raise AssertionError(self.said(place)[-2000:])

    def end(self, numbers: tuple[int, ...] = ()) -> list[int]:
        """Ends all processes, with signals or with STOP, and returns their exit codes.

        First waits until all processes have started, because a stopped run rejects new
        processes.
        """
        wait_for(self._are_at_work)
        if not numbers:
            self.run.request_stop()
        for child, number in zip(self._children, numbers, strict=False):
            child.send_signal(number)
        codes = self.codes()
        self.run.clear_stop()
        for place in range(len(self.roles)):
            assert "Traceback" not in self.said(place), self.said(place)
        return codes

    def codes(self) -> list[int]:
        """Waits until all processes end, and returns their exit codes."""
        return [child.wait(timeout=900) for child in self._children]

    def _are_at_work(self) -> bool:
        self.check_alive()
        processes = [role["process"] for role in read_status(self.run)["roles"]]
        pids = {int(process.split()[0]) for process in processes if process is not None}
        return pids == {child.pid for child in self._children}

    def close(self) -> None:
        """Kills all processes that still run."""
        for child in self._children:
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
                child.wait()


def games_in_journals(run: RunDirectory) -> Iterator[tuple[Path, Game, str]]:
    """Yields the games of all journals, except journals that are sealed meanwhile."""
    for path in sorted(find_files(run.experience, "selfplay-*/*/*.journal")):
        try:
            frames = read_journal(path).frames
        except Exception:
            if path.exists():
                raise
            continue
        for frame in frames:
            record = _core.decode_game(frame)
            columns = _core.merge_games([frame], record.generation)
            game = record.generation, record.game_index
            yield path, game, _content(columns["action"], columns["switch_model"])


def games_in_segments(run: RunDirectory) -> Iterator[tuple[Path, Game, str]]:
    """Yields the games of all sealed segments."""
    for path in sorted(run.experience.glob("selfplay-*/*/[0-9]*.npz")):
        with SegmentReader(path) as reader:
            columns = reader.game_columns()
        plies = [0, *np.cumsum(columns["num_plies"]).tolist()]
        switches = [0, *np.cumsum(columns["num_switches"]).tolist()]
        for place, index in enumerate(columns["game_index"].tolist()):
            content = _content(
                columns["action"][slice(*plies[place : place + 2])],
                columns["switch_model"][slice(*switches[place : place + 2])],
            )
            yield path, (int(path.stem), index), content


def _content(*columns: np.ndarray) -> str:
    parts = [b",".join(str(int(x)).encode() for x in column) for column in columns]
    return hashlib.sha256(b";".join(parts)).hexdigest()


def check_games(run: RunDirectory, durable: dict[Game, str]) -> int:
    """Checks that no game was lost, duplicated or changed; no process may be playing.

    Args:
        run: The run.
        durable: The games that were in a journal at some time.

    Returns:
        The number of games in the run.
    """
    found: dict[Game, str] = {}
    writers: dict[int, Path] = {}
    sealed: dict[int, list[int]] = {}
    for path, (generation, index), content in games_in_segments(run):
        sealed.setdefault(generation, []).append(index)
        assert writers.setdefault(generation, path) == path, "sealed twice"
        found[generation, index] = content
    for generation, indices in sealed.items():
        assert indices == list(range(GAMES)), f"generation {generation}"
    for path, game, content in games_in_journals(run):
        assert game not in found, f"{game} is in {path} and elsewhere"
        assert writers.setdefault(game[0], path).parts[-3] == path.parts[-3]
        found[game] = content
    begun = {int(p.stem) for p in find_files(run.experience, "selfplay-*/*/*.journal")}
    assert sorted({*sealed, *begun}) == list(range(1, max({*sealed, *begun}) + 1))
    assert {game: found.get(game) for game in durable} == durable
    return len(found)


def check_learner(run: RunDirectory) -> int:
    """Checks that all checkpoints are complete and the newest has each segment once.

    Returns:
        The number of segments in the newest checkpoint.
    """
    for number in run.checkpoints.numbers():
        read_model(run.checkpoints.entry(number))
    newest = run.checkpoints.latest()
    assert newest is not None
    state = read_extra(run.checkpoints.entry(newest))["table"]
    if "turn" in state:
        state = _check_shuffled(run, read_model(run.checkpoints.entry(newest)))
    manifest = Manifest.from_dict(run.experience, state["manifest"])
    paths = []
    for entry in manifest:
        entry.open(run.experience).close()
        paths.append(entry.path(run.experience))
    assert len(set(paths)) == len(paths)
    return len(paths)


def _check_shuffled(run: RunDirectory, checkpoint: SavedModel) -> dict[str, Any]:
    """Checks that each shuffle turn is complete and the learner used each row once.

    Returns:
        The state of the window that the newest turn was sampled from.
    """
    folder = run.shuffled
    numbers = folder.numbers()
    turn, row = checkpoint.extra["table"]["turn"], checkpoint.extra["table"]["row"]
    assert turn in numbers
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    drawn = {}
    for number in numbers:
        shard_rows = read_turn(folder, number).shard_rows
        for index, num_rows in enumerate(shard_rows):
            path = folder.entry(number) / shard_name(index)
            assert len(read_shard(path, "tictactoe").keys) == num_rows
        num_batches = read_window_state(folder, number)["num_batches"]
        drawn[number] = num_batches * BATCH_ROWS - sum(shard_rows)
        if number > numbers[0]:
            before = read_window_state(folder, number - 1)["num_batches"]
            assert drawn[number] == before * BATCH_ROWS
    assert checkpoint.num_samples == drawn[turn] + row
    return read_window_state(folder, numbers[-1])


def check_models(run: RunDirectory) -> int:
    """Checks that all models are complete, and that each number has one model.

    Returns:
        The number of models that the gate accepted.
    """
    numbers = []
    for folder in (run.models, run.candidates, run.rejected):
        for number in folder.numbers():
            load_model(folder.entry(number))
            numbers.append(number)
    assert sorted(numbers) == list(range(len(numbers)))
    return len(run.models.numbers())


def check_leftovers(run: RunDirectory, num_writers: int) -> None:
    """Checks that the number of leftover files does not grow with the kills."""
    assert list(run.path.rglob(".tmp-*")) == []
    assert list(run.path.rglob("*.journal.tmp")) == []
    writers = sorted(run.experience.glob("selfplay-*"))
    assert len(writers) <= num_writers
    for writer in writers:
        folders = [path for path in writer.iterdir() if path.is_dir()]
        assert sum(not any(path.iterdir()) for path in folders) <= 1
        generations = {path.stem for path in writer.glob("*/*.journal")}
        assert len(generations) <= 1
        assert {path.stem for path in writer.glob("*/*.unfinished")} <= generations
    assert len(run.incarnations("selfplay")) <= 2 * num_writers
    assert len(run.checkpoints.numbers()) <= 3
