"""The files in ``RUN/eval/target``: matches of a run's models against its target.

``000017.json`` is the record of the match of model 17, and ``000017-confirm.json`` the
record of its confirming match, if it passed. ``000017/0003.jsonl`` contains the games
of one part of a match, until the record or the run's result is published.
``result.json`` is the run's result. ``clock.json`` and ``generations.jsonl`` record
when the phases of training began and ended.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen.config import check, check_range, from_dict, to_dict
from tengen.errors import RunError, UsageError, os_reason
from tengen.evaluation.elo import Tally
from tengen.evaluation.played_game import PlayedGame
from tengen.observe.target import (
    MAX_TIME_S,
    RECORD_FILE,
    TARGET_SCHEMA,
    TargetResult,
    damaged_file,
    read_fields,
    read_result,
)
from tengen.run import (
    NumberedFolder,
    RunDirectory,
    find_files,
    make_directory,
    publish_file,
    publish_json,
    read_object,
    storage_error,
)
from tengen.run.publish import remove_directory

_CLOCK, _GENERATIONS = "clock.json", "generations.jsonl"
_ADVICE = "restore it from a copy, or remove it, and its games are played again"
_RESTORE = "restore it from a copy"
_MAX_BYTES = 1 << 28
_MAX_NUMBER = 10**12


@dataclass(frozen=True, kw_only=True)
class TargetRecord:
    """Result of a model's match against the target."""

    schema: int = TARGET_SCHEMA
    """Schema version of the record."""
    model: int
    """The model's number."""
    generation: int
    """The newest self-play generation in the model's training data."""
    target: str
    """The opponent, as the run's config names it."""
    target_digest: str
    """SHA-256 of the opponent's files, or of its name if it has no files."""
    num_games: int
    """Number of games of the match, including disputed ones."""
    disputed: int
    """Number of disputed games, not counted in ``wins``, ``draws`` or ``losses``."""
    illegal: int = 0
    """Number of games that the target lost with an illegal move; part of ``wins``."""
    wins: int
    """Games that the model won."""
    draws: int
    """Drawn games."""
    losses: int
    """Games that the model lost."""
    win_rate: float
    """The model's mean score per game, in [0, 1]; a draw counts as 0.5."""
    num_simulations: int
    """Simulations per move."""
    seed: int
    """Seed of the run."""
    made_at: float
    """When the model was created, in UNIX seconds."""
    began_at: float
    """When the first game of the match began, in UNIX seconds."""
    ended_at: float
    """When the record was created after the last game, in UNIX seconds."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is out of its range."""
        check_range("model", self.model, 0, _MAX_NUMBER)
        check_range("win_rate", self.win_rate, 0, 1)
        # The times may come from clocks of several hosts, so require no order.
        for name in ("made_at", "began_at", "ended_at"):
            check_range(name, getattr(self, name), 0, MAX_TIME_S)

    @property
    def tally(self) -> Tally:
        """The numbers of games that the model won, drew and lost."""
        return Tally(self.wins, self.draws, self.losses)


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Start times of a run's phases, in UNIX seconds."""

    init_at: float
    """Start time of the call that created the first model."""
    init_ended_at: float | None = None
    """When initialisation ended; None if it has not ended."""
    clock_at: float | None = None
    """When learning began; None if it has not begun or its start was not recorded."""
    restarts_at: tuple[float, ...] = ()
    """Start times of later calls of ``tengen train`` that resumed training."""

    def __post_init__(self) -> None:
        """Raises UsageError if a time is out of its range or out of order."""
        last = 0.0
        for name in ("init_at", "init_ended_at", "clock_at"):
            value = getattr(self, name)
            if value is not None:
                check_range(name, value, last, MAX_TIME_S)
                last = value
            elif name == "init_ended_at":
                check(self.clock_at is None, name, None, "must come before clock_at")
        for at in self.restarts_at:
            check_range("restarts_at", at, self.init_at, MAX_TIME_S)


@dataclass(frozen=True, kw_only=True)
class TrainedGeneration:
    """A generation on which a learner has trained; a line of ``generations.jsonl``."""

    generation: int
    """The generation's number; negative for imported games."""
    model: int
    """Number of the model that training on the generation produced."""
    num_games: int
    """Number of games in the generation."""
    began_at: float
    """When learning from the generation began, in UNIX seconds."""
    ended_at: float
    """When learning from the generation ended, in UNIX seconds."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is out of its range."""
        check_range("generation", self.generation, -_MAX_NUMBER, _MAX_NUMBER)
        for name in ("model", "num_games"):
            check_range(name, getattr(self, name), 0, _MAX_NUMBER)
        check_range("began_at", self.began_at, 0, MAX_TIME_S)
        check_range("ended_at", self.ended_at, self.began_at, MAX_TIME_S)


class TargetFiles:
    """Reads and writes ``RUN/eval/target``. Several processes may use it concurrently.

    Args:
        run: The run.
    """

    def __init__(self, run: RunDirectory) -> None:
        self.folder = run.eval / "target"
        self._games = run.games

    def make(self) -> None:
        """Creates the folder ``RUN/eval/target``; raises RunError if that fails."""
        make_directory(self.folder)

    def record(self, name: str) -> TargetRecord | None:
        """Returns the record of match ``name``; None if it is not published yet.

        Raises:
            UsageError: The record has a newer schema.
            RunError: The record is damaged, or its model does not match its name.
        """
        path = self.folder / f"{name}.json"
        if not path.exists():
            return None
        content = read_object(path, path.name, schema=TARGET_SCHEMA, advice=_ADVICE)
        found = read_fields(TargetRecord, path, content, _ADVICE)
        if found.model != int(name.partition("-")[0]):
            raise damaged_file(path, f"model ({found.model}) does not match its name")
        return found

    def records(self) -> list[TargetRecord]:
        """Returns the records of all models that played the target, ordered by model.

        Raises:
            UsageError: A record has a newer schema.
            RunError: A record is damaged, or its model does not match its name.
        """
        names = (RECORD_FILE.fullmatch(p.name) for p in find_files(self.folder, "*"))
        found = [self.record(name[1]) for name in names if name is not None]
        known = [record for record in found if record is not None]
        return sorted(known, key=lambda record: record.model)

    def publish_record(self, name: str, record: TargetRecord) -> None:
        """Publishes the record of a match and removes the files of its games.

        Raises:
            RunError: The record cannot be written.
        """
        publish_json(self.folder / f"{name}.json", to_dict(record))
        self.clear_games(name)

    def clear_games(self, name: str) -> None:
        """Removes the games of match ``name``, whose record has been published."""
        if (self.folder / name).exists():
            remove_directory(self.folder / name)

    def clear_all_games(self) -> None:
        """Removes the games of all matches, once the run's result is published."""
        for path in self.folder.iterdir():
            if path.is_dir():
                remove_directory(path)

    def told_games(self, *, confirms: bool) -> NumberedFolder:
        """Returns the folder of SGF or JSON game records, numbered by model.

        Args:
            confirms: Whether to return the folder of the confirming matches.
        """
        return NumberedFolder(
            self._games / ("target-confirm" if confirms else "target")
        )

    def clear_told_games(self) -> None:
        """Removes the game records in the folders of ``told_games``."""
        for confirms in (False, True):
            folder = self.told_games(confirms=confirms)
            for number in folder.numbers():
                remove_directory(folder.entry(number))

    def has_games(self, name: str, chunk: int) -> bool:
        """Returns whether the games of part ``chunk`` of a match are published."""
        return self._chunk(name, chunk).exists()

    def publish_games(
        self, name: str, chunk: int, games: Sequence[PlayedGame], began_at: float
    ) -> None:
        """Publishes the games of part ``chunk`` of match ``name``.

        Args:
            name: Name of the match.
            chunk: Index of the part, from 0.
            games: All games of the part.
            began_at: When the first game began, in UNIX seconds.

        Raises:
            RunError: The games cannot be written.
        """
        path = self._chunk(name, chunk)
        make_directory(path.parent)
        lines = [{"began_at": began_at}, *(game.to_json() for game in games)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        publish_file(path, text.encode())

    def games(self, name: str, chunk: int) -> tuple[list[PlayedGame], float]:
        """Returns the games of part ``chunk``, and the UNIX time at which it began.

        Raises:
            RunError: The file is damaged.
        """
        path = self._chunk(name, chunk)
        try:
            if path.stat().st_size > _MAX_BYTES:
                raise ValueError("it is too large")
            first, *lines = path.read_bytes().splitlines()
            games = [
                from_dict(PlayedGame, json.loads(line), where=str(path))
                for line in lines
            ]
            return games, float(json.loads(first)["began_at"])
        except OSError as error:
            raise storage_error(path, error) from error
        except (
            ValueError,
            LookupError,
            TypeError,
            RecursionError,
            UsageError,
        ) as error:
            raise RunError(f"games ({path}) are damaged, {error}; {_ADVICE}") from error

    def result(self, iterations: int) -> TargetResult | None:
        """Returns the result of the run; None if it is not published yet.

        Args:
            iterations: ``agent.iterations``. A result for a different value is ignored.

        Raises:
            UsageError: The result has a newer schema.
            RunError: The result is damaged.
        """
        found = read_result(self.folder)
        return None if found is None or found.iterations != iterations else found

    def publish_result(self, result: TargetResult) -> None:
        """Publishes the result of the run.

        Raises:
            RunError: The result cannot be written.
        """
        publish_json(self.folder / "result.json", to_dict(result))

    def clock(self) -> Clock | None:
        """Returns the content of ``clock.json``; None if it is not published yet.

        Raises:
            UsageError: ``clock.json`` has a newer schema.
            RunError: ``clock.json`` is damaged.
        """
        path = self.folder / _CLOCK
        if not path.exists():
            return None
        content = read_object(path, path.name, schema=TARGET_SCHEMA, advice=_RESTORE)
        return read_fields(Clock, path, content)

    def generations(self) -> list[TrainedGeneration]:
        """Returns the generations on which the learner has trained, in order.

        If the learner was killed and has repeated a generation, the file has two lines
        for it, and the later line counts.

        Raises:
            RunError: ``generations.jsonl`` is damaged, or cannot be read.
        """
        path = self.folder / _GENERATIONS
        if not path.exists():
            return []
        try:
            with open(path, "rb") as file:
                data = file.read(_MAX_BYTES + 1)
        except OSError as error:
            raise RunError(
                f"{path.name} ({path}) cannot be read, {os_reason(error)}; {_RESTORE}"
            ) from error
        if len(data) > _MAX_BYTES:
            raise damaged_file(path, f"it has more than {_MAX_BYTES} bytes")
        found: dict[int, TrainedGeneration] = {}
        for number, line in enumerate(data.splitlines(), 1):
            try:
                content = json.loads(line)
            except (ValueError, RecursionError):
                content = None
            if not isinstance(content, dict):
                raise damaged_file(path, f"line {number} is not a JSON object")
            each = read_fields(TrainedGeneration, path, content)
            found[each.generation] = each
        return [found[number] for number in sorted(found)]

    def history_model(self) -> int | None:
        """Returns the newest model in the published history; None if there is none.

        Raises:
            UsageError: ``clock.json`` has a newer schema.
            RunError: ``clock.json`` is damaged.
        """
        path = self.folder / _CLOCK
        if not path.exists():
            return None
        kept = read_object(path, path.name, schema=TARGET_SCHEMA, advice="remove it")
        number = kept.get("last_model")
        return number if isinstance(number, int) else None

    def publish_history(
        self, clock: dict[str, Any], generations: list[dict[str, Any]]
    ) -> None:
        """Publishes ``clock.json`` and ``generations.jsonl`` after training has ended.

        Args:
            clock: The fields of ``Clock``, and ``last_model``, the newest model.
            generations: The lines. Fields that older versions did not record are None.

        Raises:
            RunError: A file cannot be written.
        """
        text = "".join(json.dumps(line) + "\n" for line in generations)
        publish_file(self.folder / _GENERATIONS, text.encode())
        publish_json(self.folder / _CLOCK, {"schema": TARGET_SCHEMA, **clock})

    def _chunk(self, name: str, chunk: int) -> Path:
        return self.folder / name / f"{chunk:04d}.jsonl"
