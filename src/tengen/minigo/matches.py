"""Plays a run's models against the run's target, in order of model number."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from typing import NamedTuple

from tengen import games
from tengen.agents.alphazero import AlphaZero
from tengen.config import to_dict
from tengen.errors import RunError, UsageError
from tengen.evaluation import (
    MatchPlayer,
    MatchReport,
    MatchStopped,
    ModelPlayer,
    play_match,
    stopped_by,
    write_games,
)
from tengen.evaluation.elo import Tally
from tengen.evaluation.named_players import is_engine
from tengen.evaluation.played_game import PlayedGame
from tengen.inference import InferenceConfig
from tengen.minigo.closed_division import open_because
from tengen.minigo.history import has_history, publish_history, run_open_because
from tengen.minigo.opponent import (
    check_terms,
    check_typed_opponent,
    is_network,
    keep_terms,
    open_opponent,
    opponent_digest,
)
from tengen.minigo.order import TargetMatch, open_matches, target_result
from tengen.minigo.target_files import TargetFiles, TargetRecord
from tengen.models.load import read_meta
from tengen.roles.config import RunConfig, newest_inference
from tengen.roles.judging.gate import open_player
from tengen.roles.role import Report, Role, RoleContext
from tengen.roles.spent import read_began
from tengen.run import RunDirectory, WriterLock, make_directory
from tengen.run.publish import remove_directory

_LOOK_S = 0.2
_AHEAD = 2
"""How many matches after the first unfinished match a process may already play."""
_GPU_THREADS = 2
"""Threads per GPU if both players use GPUs. One thread searches while the GPU evaluates
the batch of the other (double buffering). More threads would make batches smaller."""
_GPU_SLOTS = 256
"""Maximum number of concurrent games per thread if both players use GPUs."""
_NAMES = 64
"""Number of lock names. Parts that share a lock name cannot be played concurrently."""
_MAX_ODD = 0.02
"""Maximum share of a match's games that may be disputed, and maximum share that the
target may lose with an illegal move; one game is always allowed. A target above this
share apparently plays by different rules, so its losses prove nothing.
"""


class Room(NamedTuple):
    """The threads and devices of a match."""

    num_threads: int
    """Number of threads that play games."""
    num_slots: int | None = None
    """Maximum number of concurrent games per thread; None for the default."""
    devices: str | None = None
    """Devices of the opponent, if it is a model; None for the CPU."""


def room_for(inference: InferenceConfig, opponent: str, num_threads: int) -> Room:
    """Returns the threads and devices of a match: on GPUs, few threads with many games.

    Args:
        inference: Inference config of the run's models.
        opponent: The opponent, as the run's config names it.
        num_threads: Number of threads that this process may use.

    Raises:
        UsageError: The opponent does not exist.
    """
    if not (inference.is_on_gpu and is_network(opponent)):
        return Room(num_threads)
    threads = _GPU_THREADS * len(inference.devices.split(","))
    return Room(min(num_threads, threads), _GPU_SLOTS, inference.devices)


class TargetMatches(Role):
    """Plays a run's models against its target. Not thread-safe.

    A match is split into parts, which any number of processes share. A process that
    finds all parts finished publishes the match's record. If other processes are
    playing all remaining parts of the first unfinished match, this process starts on
    the next matches. The run's result is published only after all models are trained.

    Args:
        config: The run's config.
        run: The run.
        context: The role's context. Its ``stop`` ends a turn and discards the turn's
            games. Its ``progress`` receives a part's ``stage`` ten times a second.

    Attributes:
        waits_for: Why the last turn did no work, with advice; empty if it did work.

    Raises:
        UsageError: The run has no target, or earlier games were played with different
            settings or against a different target.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        super().__init__(config, run, context)
        agent = AlphaZero.of(config.agent, "eval")
        if not agent.target.opponent:
            raise UsageError("agent.target.opponent (empty) must be set; name a target")
        self._target = agent.target
        self._iterations = agent.iterations
        precision = config.inference.precision
        self._searches = agent.play_against_target()
        self._play = self._searches.in_precision(precision)
        self._files = TargetFiles(run)
        self._files.make()
        check_terms(self._files, self._target, self._searches)
        self._game = games.open_game(config.task)
        self._room = room_for(
            self._inference(), self._target.opponent, context.num_threads
        )
        self._opponent: MatchPlayer | None = None
        self._model: tuple[int, ModelPlayer] | None = None

    def turn(self) -> Report | None:
        """Plays a part or publishes a result; returns a report, or None at the end."""
        while True:
            self.waits_for = ""
            models = self._run.models.numbers()
            newest = max(models, default=0)
            is_trained = newest >= self._iterations
            if is_trained and not has_history(self._run):
                with self._claimed("history") as is_mine:
                    if is_mine:
                        publish_history(self._run)
            if self._files.result(self._iterations) is not None:
                # Remove games that were not needed, or that a killed process left.
                self._files.clear_all_games()
                self.waits_for = f"{self._run.path} has its result"
                return None
            matches = open_matches(models, self._files, self._target)
            if not matches and not is_trained:
                self.waits_for = (
                    f"models ({newest}) must be agent.iterations ({self._iterations}) "
                    "for a result; resume with tengen train"
                )
                return None
            if not matches and (report := self._publish_result(models)) is not None:
                return report
            for match in matches[: 1 + _AHEAD]:
                if (report := self._work_at(match)) is not None:
                    return report
            # Other processes are playing all remaining parts, so wait for them.
            if self._context.stop.wait(_LOOK_S):
                return {"stopped": True}

    def _work_at(self, match: TargetMatch) -> Report | None:
        """Plays a free part, or publishes the record; None if neither is possible."""
        chunks = match.chunks(self._target.chunk_games)
        missing = [
            chunk
            for chunk in range(len(chunks))
            if not self._files.has_games(match.name, chunk)
        ]
        if not missing:
            with self._claimed(f"record-{match.model % _NAMES:02d}") as is_mine:
                return self._publish_record(match, len(chunks)) if is_mine else None
        for chunk in missing:
            place = (match.model * len(chunks) + chunk) % _NAMES
            with self._claimed(f"{place:02d}") as is_mine:
                if is_mine and not self._is_there(match, chunk):
                    return self._play_chunk(match, chunk, chunks[chunk])
        return None

    def _is_there(self, match: TargetMatch, chunk: int) -> bool:
        # Another process may have finished the part or the match in the meantime.
        is_recorded = self._files.record(match.name) is not None
        return is_recorded or self._files.has_games(match.name, chunk)

    @contextlib.contextmanager
    def _claimed(self, name: str) -> Iterator[bool]:
        """Tries to acquire the run's lock ``name``; yields whether it did."""
        lock: WriterLock | None = None
        name = f"target-{name}"
        if self._run.lock_holder(name) is None:
            with contextlib.suppress(UsageError):  # another process has the lock
                lock = self._run.lock(name)
        try:
            yield lock is not None
        finally:
            if lock is not None:
                lock.release()

    def _play_chunk(self, match: TargetMatch, chunk: int, num_games: int) -> Report:
        keep_terms(self._files, self._target, self._searches)
        began_at = time.time()

        try:
            report = self.play(match, chunk, num_games)
        except MatchStopped:
            return {"model": match.model, "stopped": True}
        try:
            self._files.publish_games(match.name, chunk, report.games, began_at)
        except RunError:
            # Once the run has its result, another process may have removed the folder.
            if self._files.result(self._iterations) is None:
                raise
        return {
            "model": match.model,
            "part": chunk,
            "num_games": num_games,
            "seconds": time.time() - began_at,
        }

    def play(self, match: TargetMatch, chunk: int, num_games: int) -> MatchReport:
        """Plays part ``chunk`` of a match. Blocks.

        Args:
            match: The match.
            chunk: Index of the part, from 0.
            num_games: Number of games in the part.

        Raises:
            MatchStopped: The role was stopped.
            UsageError: The target is missing, or is a program that was not typed.
            RunError: A model is damaged, or the target fails.
        """

        def watch(tally: Tally) -> None:
            stage = f"model {match.model:06d} {match.words}, part {chunk + 1}"
            self._context.progress({"stage": stage})
            stopped_by(self._context.stop.is_set)(tally)

        return play_match(
            self._game,
            self.open_model(match.model),
            self.open_target(),
            num_games=num_games,
            num_simulations=self._target.num_simulations,
            seed=match.seed(self._config.seed, chunk),
            num_threads=self._room.num_threads,
            num_slots=self._room.num_slots,
            opening_plies=self._target.opening_plies,
            watch=watch,
        )

    def _publish_record(self, match: TargetMatch, num_chunks: int) -> Report | None:
        if self._files.record(match.name) is not None:
            return None
        parts = [self._files.games(match.name, chunk) for chunk in range(num_chunks)]
        played = _numbered([game for found, _ in parts for game in found])
        if len(played) != match.num_games:
            raise RunError(
                f"games ({len(played)} of model {match.model}) must be "
                f"{match.num_games}; remove {self._files.folder / match.name}, and "
                "they are played again"
            )
        scores = [game.score_a for game in played]
        tally = Tally(scores.count(1.0), scores.count(0.5), scores.count(0.0))
        disputed = len(played) - tally.num_games
        illegal = [game.illegal for game in played if game.illegal]
        most = max(1, int(_MAX_ODD * len(played)))
        if disputed > most:
            raise RunError(
                f"games ({disputed} disputed of {len(played)} of model {match.model}) "
                f"must be at most {most}; give the target the rules of "
                f"{self._config.task}"
            )
        if len(illegal) > most:
            raise RunError(
                f"games ({len(illegal)} of {len(played)} of model {match.model} that "
                f"the target lost with an illegal move) must be at most {most}; give "
                f"the target the rules of {self._config.task}: {illegal[0]}"
            )
        # The target's files may have changed since the first game.
        check_terms(self._files, self._target, self._searches)
        meta = read_meta(self._run.models.entry(match.model), error=RunError)
        record = TargetRecord(
            model=match.model,
            generation=meta.generation,
            target=self._target.opponent,
            target_digest=opponent_digest(self._target),
            num_games=len(played),
            disputed=disputed,
            illegal=len(illegal),
            wins=tally.wins,
            draws=tally.draws,
            losses=tally.losses,
            win_rate=tally.score,
            num_simulations=self._target.num_simulations,
            seed=self._config.seed,
            made_at=_made_at(meta.made_at, match.model),
            began_at=min(began_at for _, began_at in parts),
            ended_at=time.time(),
        )
        self._keep(match, played)
        self._files.publish_record(match.name, record)
        return {
            "model": match.model,
            "win_rate": record.win_rate,
            "confirms": match.confirms,
            "wins": tally.wins,
            "draws": tally.draws,
            "losses": tally.losses,
            "told": f"model {match.model:06d} {match.words}: {tally.wins} won, "
            f"{tally.draws} drawn, {tally.losses} lost, {tally.score:.3f}",
        }

    def _keep(self, match: TargetMatch, played: list[PlayedGame]) -> None:
        """Writes the match's games to ``RUN/games`` as human-readable records."""
        folder = self._files.told_games(confirms=match.confirms)
        make_directory(folder.path)
        # A process that was killed before it published the record may have left a
        # folder here. Parts may have been played again since then, so replace it.
        if folder.entry(match.model).exists():
            remove_directory(folder.entry(match.model))
        names = (f"{match.model:06d}", self._target.opponent)
        folder.publish(
            match.model,
            lambda path: write_games(path, self._config.task, *names, played),
        )

    def _publish_result(self, models: list[int]) -> Report | None:
        with self._claimed("result") as is_mine:
            if not is_mine:
                return None
            if self._files.result(self._iterations) is not None:
                return None
            because = open_because(to_dict(self._config))
            because += [
                one for one in run_open_because(self._run) if one not in because
            ]
            result = target_result(
                models,
                self._files,
                self._target,
                iterations=self._iterations,
                clock_at=read_began(self._run),
                open_because=because,
            )
            self._files.publish_result(result)
            return {**to_dict(result), "is_result": True}

    def open_model(self, number: int) -> MatchPlayer:
        """Returns the player for model ``number``. Blocks while the model is loaded."""
        if self._model is None or self._model[0] != number:
            entry = self._run.models.entry(number)
            parts = (
                self._config,
                self._play,
                self._inference(),
                self._room.num_threads,
            )
            player = open_player(entry, *parts)
            self._model = number, player
        return self._model[1]

    def _inference(self) -> InferenceConfig:
        return newest_inference(self._run, self._config)

    def open_target(self) -> MatchPlayer:
        """Returns the target's player. The first call opens the target and blocks."""
        if self._opponent is None:
            word = self._target.opponent
            if is_engine(word):
                # Check again: run.json may have changed since the runner checked it.
                check_typed_opponent(
                    word, self._context.opponent, self._run.path, "--opponent "
                )
            self._opponent = open_opponent(
                self._target,
                self._config.task,
                self._play,
                self._room.num_threads,
                devices=self._room.devices,
            )
        return self._opponent


def _numbered(played: list[PlayedGame]) -> list[PlayedGame]:
    return [dataclasses.replace(game, index=index) for index, game in enumerate(played)]


def _made_at(made_at: float | None, model: int) -> float:
    if made_at is None:
        raise RunError(
            f"model ({model:06d}) has no creation time, because an earlier version "
            "made it; train a new run"
        )
    return made_at
