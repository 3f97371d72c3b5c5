"""Self-play in several processes, for games whose rules hold the GIL.

The games of a generation are divided among single-threaded processes
(`tengen.actors.play_process`). A game depends only on its index, so the games do not
depend on the number of processes. The processes send finished games to the parent
process, which alone writes files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.actors.selfplay import GenerationReport
from tengen.actors.selfplay_config import SelfplayConfig
from tengen.config import to_dict
from tengen.errors import RunError
from tengen.games import check_allowed
from tengen.inference import InferenceConfig
from tengen.run import close_owned, own_files

_MAX_DEATHS = 5
"""Number of times that a process may die in a row, without finishing a game, before an
error is raised."""
_CLOSE_TIMEOUT_S = 5.0
_INTERVAL_S = 0.25


@dataclass(frozen=True, kw_only=True)
class GamesOfGeneration:
    """One generation: the games to play, and the model that plays them."""

    task: str
    """The game's name, as for ``tengen.games.open_game``."""
    config: SelfplayConfig
    """Settings of self-play, such as the number of games."""
    directory: Path
    """The model's directory."""
    inference: InferenceConfig
    """Settings of inference, with every ``auto`` resolved."""
    seed: int
    """The run's seed."""
    generation: int
    """The generation's index."""
    model: int
    """The model's number."""
    finished: Sequence[int] = ()
    """Indices of games that are already stored on disk and are not played again."""
    may_resign: bool = False
    """Whether players may resign; see ``SelfplayConfig.resign_above``."""
    fork_sources: Sequence[tuple[str, list[int]]] = ()
    """Variant and moves of each earlier game from which a game may fork."""
    openings: Sequence[Sequence[int]] = ()
    """Openings from the opening book, with which some games start."""


@dataclass
class _Child:
    """One self-play process, and the state of the games assigned to it."""

    process: subprocess.Popen[bytes]
    connection: Connection
    left: set[int] = field(default_factory=set)
    """Indices of assigned games that the process has not sent yet."""
    num_evaluations: int = 0
    num_deaths: int = 0
    report: GenerationReport | None = None


class SelfplayProcesses:
    """Self-play processes that divide the games of each generation among them.

    The processes stay alive between generations. Not thread-safe.

    Args:
        num_processes: Number of processes, at least 1.

    Attributes:
        first_backoff_s: Initial back-off in seconds before a dead process is restarted;
            doubled with each further death.
    """

    first_backoff_s = 0.5

    def __init__(self, num_processes: int) -> None:
        self._num_processes = num_processes
        self._children: list[_Child] = []
        self._stopping = False
        self._games: GamesOfGeneration | None = None

    def play(
        self,
        games: GamesOfGeneration,
        take: Callable[[bytes], None],
        on_progress: Callable[[int, int], None],
    ) -> GenerationReport:
        """Plays a generation. Blocks until all games are played or ``stop`` is called.

        A process that dies is replaced; the new process plays the games not yet sent.

        Args:
            games: The games to play.
            take: Called with the bytes of each finished game.
            on_progress: Called at least every 0.25 s with the numbers of games and
                evaluations so far; may call ``stop`` or ``play_fewer``.

        Raises:
            RunError: A process died repeatedly, or failed.
            UsageError: The game broke the protocol, the user did not type its module in
                this call, or the backend cannot be used.
        """
        check_allowed(games.task)  # the processes do not check the task again
        start_s = time.monotonic()
        self._stopping = False
        self._games = games
        finished = set(games.finished)
        every = range(games.config.games_per_generation)
        left = [index for index in every if index not in finished]
        while len(self._children) < min(self._num_processes, len(left)):
            self._children.append(_Child(*_start()))
        playing = self._children[: len(left)]
        for place, child in enumerate(playing):
            child.left = set(left[place :: len(playing)])
            child.num_evaluations, child.report = 0, None
            _give(child, games)
        num_games = 0
        while waiting := [child for child in playing if child.report is None]:
            ready = wait([child.connection for child in waiting], _INTERVAL_S)
            for child in (child for child in waiting if child.connection in ready):
                for frame in self._receive(child, self._games):
                    take(frame)
                    num_games += 1
            on_progress(num_games, sum(child.num_evaluations for child in playing))
        reports = [child.report for child in playing if child.report is not None]
        return _sum(reports, num_games, time.monotonic() - start_s)

    def stop(self) -> None:
        """Tells every process to stop playing, so that ``play`` returns soon."""
        if self._stopping:
            return
        self._stopping = True
        for child in self._children:
            _send(child, {"stop": True})

    def play_fewer(self, num_games: int) -> None:
        """Reduces the current generation to its first ``num_games`` games.

        Unfinished games with a higher index are abandoned; finished games remain valid.

        Args:
            num_games: Number of games, including those that are already finished.
        """
        assert self._games is not None
        config = dataclasses.replace(self._games.config, games_per_generation=num_games)
        self._games = dataclasses.replace(self._games, config=config)
        for child in self._children:
            child.left &= {*range(num_games)}
            _send(child, {"fewer": num_games})

    def close(self) -> None:
        """Ends all processes. Idempotent."""
        for child in self._children:
            close_owned(child.connection)
        for child in self._children:
            try:
                child.process.wait(_CLOSE_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                # Kill it: no game is lost, because games not sent are played again.
                child.process.kill()
                child.process.wait()
        self._children = []

    def _receive(self, child: _Child, games: GamesOfGeneration) -> list[bytes]:
        """Receives one message from a process and returns the finished games in it."""
        try:
            message: dict[str, Any] = child.connection.recv()
        except (EOFError, ConnectionError):
            self._replace(child, games)
            return []
        if "error" in message:
            raise message["error"]
        if "report" in message:
            child.report = GenerationReport(**message["report"])
            return []
        frames: list[bytes] = message["games"]
        child.num_evaluations = message["num_evaluations"]
        if frames:
            child.num_deaths = 0
        child.left -= {int(_core.decode_game(frame).game_index) for frame in frames}
        return frames

    def _replace(self, child: _Child, games: GamesOfGeneration) -> None:
        """Replaces a process that has died, unless ``stop`` was called."""
        code = child.process.wait()
        close_owned(child.connection)
        if self._stopping:
            child.report = GenerationReport()
            self._children.remove(child)
            return
        child.num_deaths += 1
        if child.num_deaths >= _MAX_DEATHS:
            words = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise RunError(
                f"self-play process (of {games.task}) died {child.num_deaths} times in "
                f"a row, last with {words}; see its output, or use --threads 1"
            )
        time.sleep(self.first_backoff_s * 2 ** (child.num_deaths - 1))
        child.process, child.connection = _start()
        _give(child, games)


def _start() -> tuple[subprocess.Popen[bytes], Connection]:
    ours, theirs = Pipe()
    descriptor = theirs.fileno()
    process = subprocess.Popen(
        # -P keeps the working directory off sys.path, because only a task that the user
        # typed may import from it.
        [sys.executable, "-P", "-m", "tengen.actors.play_process", str(descriptor)],
        stdin=subprocess.DEVNULL,
        pass_fds=[descriptor],
    )
    theirs.close()
    own_files(ours)
    return process, ours


def _give(child: _Child, games: GamesOfGeneration) -> None:
    """Sends a process the description of the games that it must play."""
    num_games = games.config.games_per_generation
    generation = {
        "seed": games.seed,
        "generation": games.generation,
        "model": games.model,
        "num_games": num_games,
        "finished": [i for i in range(num_games) if i not in child.left],
        "may_resign": games.may_resign,
        "fork_sources": list(games.fork_sources),
        "openings": [list(opening) for opening in games.openings],
    }
    order = {
        "task": games.task,
        "actor": to_dict(games.config),
        "directory": games.directory,
        "inference": to_dict(games.inference),
        "generation": generation,
    }
    _send(child, {"play": order})


def _send(child: _Child, message: dict[str, Any]) -> None:
    # Ignore the error of a dead process, because the next receive detects its death.
    with contextlib.suppress(ConnectionError):
        child.connection.send(message)


def _sum(
    reports: Sequence[GenerationReport], num_games: int, seconds: float
) -> GenerationReport:
    """Returns the sum of the processes' reports.

    The parent supplies the number of games and the wall time. The batch capacity is the
    maximum over processes, because each process has its own batches.
    """
    names = {item.name for item in dataclasses.fields(GenerationReport)} - {"notes"}
    total = {name: sum(getattr(report, name) for report in reports) for name in names}
    total["num_games"], total["seconds"] = num_games, seconds
    total["batch_capacity"] = max((r.batch_capacity for r in reports), default=0)
    notes = dict.fromkeys(note for report in reports for note in report.notes)
    return GenerationReport(**total, notes=tuple(notes))
