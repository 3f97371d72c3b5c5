"""Role ``gate`` accepts or rejects one candidate per turn; role ``rate`` rates models.

A gate that plays matches may be slower than the learner, so the gate judges only the
newest candidate and rejects older candidates without a match, as in KataGo.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tengen import envs, games
from tengen.actors import NUM_OPPONENTS
from tengen.agents import EnvironmentAgent
from tengen.agents.alphazero import AlphaZero
from tengen.config import to_dict
from tengen.errors import RunError
from tengen.evaluation import (
    AcceptAllGate,
    Acting,
    GateResults,
    GateVerdict,
    MatchGate,
    MatchJournal,
    MatchRecord,
    MatchStopped,
    ModelPlayer,
    PlayedGate,
    Side,
    SprtGate,
    judge,
    play_episodes,
    publish_record,
    rate_generation,
    read_records,
    write_games,
)
from tengen.evaluation.match import MAX_SEED
from tengen.evaluation.ratings.fit import Rating
from tengen.evaluation.ratings.ladder import team_ratings
from tengen.inference import InferenceConfig, open_backend, search_outputs
from tengen.models import accept, reject
from tengen.models.load import read_meta
from tengen.roles.config import RunConfig, newest_inference
from tengen.roles.config.environments import earlier_models, open_kept
from tengen.roles.inputs import run_book
from tengen.roles.role import Report, Role, RoleContext
from tengen.run import NumberedFolder, RunDirectory, make_directory, remove_leftovers
from tengen.search import PlayConfig

_NUM_KEPT = 20
"""The maximum number of rejected models on the disk, and of accepted models in
environments. Runs of games keep all accepted models, because games refer to them."""

_EVENT_EVERY_S = 10.0
"""The minimum interval between recorded progress reports of a match, in seconds."""

# Matches in environments: episodes, copies, steps after which an episode is cut, and
# random actions of agents without a policy, whose episodes could all be equal.
_MATCH_EPISODES, _MATCH_COPIES, _MATCH_STEPS, _MATCH_EPSILON = 32, 8, 10_000, 0.05

_NO_CANDIDATE = "there is no candidate; run tengen export first"


class GateRole(Role):
    """Accepts or rejects candidates by renaming their folders.

    Raises:
        UsageError: Another process is the gate of this run.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        super().__init__(config, run, context, "gate")
        # In environments the gate accepts all candidates.
        agent = config.games
        gate = self._gate = AcceptAllGate() if agent is None else agent.gate
        self._play = PlayConfig() if agent is None else agent.play
        uses_book = isinstance(gate, PlayedGate) and gate.book
        self._book = run_book(config, run) if uses_book else None
        self._remove_matches()

    def turn(self) -> Report | None:
        """Decides on one candidate; returns None if there are no candidates.

        A gate that plays matches takes the candidate with an unfinished match, or else
        the newest, and rejects all older candidates. An ``AcceptAllGate`` takes the
        oldest candidate, because accepting each candidate costs only a rename.
        """
        numbers = self._run.candidates.numbers()
        self.waits_for = "" if numbers else _NO_CANDIDATE
        if not numbers:
            return None
        gate = self._gate
        plays = not isinstance(gate, AcceptAllGate)
        candidate = self._begun_or_newest(numbers) if plays else numbers[0]
        report: dict[str, Any] = {"candidate": candidate}
        champion = self._run.models.latest()
        is_accepted = True
        if champion is not None and not isinstance(gate, AcceptAllGate):
            # Load both models before the match begins, so that a damaged candidate does
            # not block the gate.
            players = (
                self._player(self._run.candidates, candidate),
                self._player(self._run.models, champion),
            )
            journal = self._journal(gate, candidate, champion)
            if journal.gaps:
                report["journal_gaps"] = [str(gap) for gap in journal.gaps]
            report |= {"champion": champion, "num_recovered": len(journal.played)}
            try:
                verdict = self._judge(gate, candidate, players, journal)
            except MatchStopped:
                # The next turn resumes the match with the games already played.
                return {**report, "stopped": True}
            finally:
                journal.close()
            report |= verdict.results.to_json()
            is_accepted = verdict.is_accepted
            self._publish_games(candidate, champion, verdict)
        # Reject older candidates first, so that a turn that is repeated after a kill
        # decides on the same candidate.
        passed_over = [n for n in self._run.candidates.numbers() if n < candidate]
        for number in passed_over:
            reject(self._run, number)
        if passed_over:
            report["passed_over"] = ", ".join(f"{n:06d}" for n in passed_over)
        if is_accepted:
            accept(self._run, candidate)
        else:
            reject(self._run, candidate)
        self._run.rejected.retire(_NUM_KEPT)
        if self._config.games is None:
            has_opponents = self._config.schedule.has_opponents
            self._run.models.retire(_NUM_KEPT, NUM_OPPONENTS if has_opponents else 0)
        MatchJournal.remove(self._match_folder(candidate))
        return {**report, "accepted": is_accepted}

    def _judge(
        self,
        gate: MatchGate | SprtGate,
        candidate: int,
        players: tuple[ModelPlayer, ModelPlayer],
        journal: MatchJournal,
    ) -> GateVerdict:
        told_s = -_EVENT_EVERY_S

        def progress(results: GateResults) -> None:
            nonlocal told_s
            found = results.to_json()
            report: dict[str, Any] = {"stage": f"gate, {found['summary']}"}
            if time.monotonic() - told_s >= _EVENT_EVERY_S:
                told_s = time.monotonic()
                report["gate"] = {"candidate": candidate, **found}
            self._context.progress(report)

        return judge(
            gate,
            games.open_game(self._config.task),
            *players,
            seed=self._seed(candidate),
            num_threads=self._context.num_threads,
            book=self._book,
            played=journal.played,
            keep=journal.keep,
            progress=progress,
            stop=self._context.stop.is_set,
        )

    def _seed(self, candidate: int) -> int:
        return (self._config.seed + candidate) % (MAX_SEED + 1)

    def _player(self, folder: NumberedFolder, number: int) -> ModelPlayer:
        inference = newest_inference(self._run, self._config)
        num_threads = self._context.num_threads
        entry = folder.entry(number)
        return open_player(entry, self._config, self._play, inference, num_threads)

    def _sha256(self, folder: NumberedFolder, number: int) -> dict[str, str]:
        return read_meta(folder.entry(number), error=RunError).sha256

    def _match_folder(self, candidate: int) -> Path:
        return self._run.eval / f"gate-{candidate:06d}"

    def _begun_or_newest(self, numbers: list[int]) -> int:
        """Returns the candidate with an unfinished match, or else the newest candidate.

        An unfinished match is resumed even if there are newer candidates, because a
        gate that is stopped often would otherwise never finish a match.
        """
        begun = [number for number in numbers if self._match_folder(number).exists()]
        return max(begun or numbers)

    def _journal(self, gate: PlayedGate, candidate: int, champion: int) -> MatchJournal:
        """Returns the journal of the match between a candidate and the champion."""
        key = {
            "task": self._config.task,
            "candidate": candidate,
            "champion": champion,
            # A candidate that was removed by hand may be exported again with the same
            # number but other weights.
            "sha256": [
                self._sha256(self._run.candidates, candidate),
                self._sha256(self._run.models, champion),
            ],
            "seed": self._seed(candidate),
            "num_simulations": gate.num_simulations,
            "opening_plies": gate.opening_plies,
            "book": "" if self._book is None else self._book.digest,
            "inference": to_dict(newest_inference(self._run, self._config)),
        }
        return MatchJournal(self._match_folder(candidate), key)

    def _remove_matches(self) -> None:
        """Removes journals of finished matches that a killed process left behind."""
        waiting = {self._match_folder(n) for n in self._run.candidates.numbers()}
        for folder in self._run.eval.glob("gate-*"):
            if folder not in waiting:
                MatchJournal.remove(folder)

    def _publish_games(
        self, candidate: int, champion: int, verdict: GateVerdict
    ) -> None:
        """Writes a match's games to ``RUN/games/gate``, and removes older matches."""
        num_kept = verdict.results.gate.matches_kept
        if num_kept == 0:
            return
        folder = NumberedFolder(self._run.games / "gate")
        make_directory(folder.path)
        remove_leftovers(folder.path)
        # A process that was killed before it moved the candidate may have written them.
        if not folder.entry(candidate).exists():
            names = (f"{candidate:06d}", f"{champion:06d}")
            folder.publish(
                candidate,
                lambda path: write_games(
                    path, self._config.task, *names, verdict.games
                ),
            )
        folder.retire(num_kept)


class RateRole(Role):
    """Rates models and stores the match results in ``RUN/eval``.

    In an environment with several teams, a model plays a match against the first model
    and one against the last earlier model, in which each side has a team in turn.

    Raises:
        UsageError: Another process rates this run.
    """

    time_limit_s = 10.0
    """Seconds after which a turn begins no further match or round of games. In an
    environment the time begins with the first step, and later turns play the rest."""

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        super().__init__(config, run, context, "rate")
        if config.games is None:
            self._agent = EnvironmentAgent.of(config.agent, "rate")
            self._records = [r for r in read_records(run) if r.task == config.task]
            self._rate = self._rate_in_environment
            return
        agent = AlphaZero.of(config.agent, "rate")
        self._rating, self._play = agent.rating, agent.play
        self._book = run_book(config, run) if self._rating.book else None
        self._game = games.open_game(config.task)
        self._rate = self._rate_in_game

    def turn(self) -> Report | None:
        """Rates the newest model; returns None if there is no match to play."""
        model = self._newest_model()
        if model is None:
            return None
        try:
            rating = self._rate(model)
        except MatchStopped:
            return {"model": model, "stopped": True}
        if rating is None:
            return None
        return {
            "model": model,
            "rating": rating.elo,
            "rating_error": rating.error,
        }

    def _rate_in_game(self, model: int) -> Rating | None:
        self._context.progress({"stage": "rating"})
        inference = newest_inference(self._run, self._config)
        num_threads = self._context.num_threads
        entry = self._run.models.entry(model)
        player = open_player(entry, self._config, self._play, inference, num_threads)
        return rate_generation(
            self._run,
            model,
            player,
            self._game,
            self._rating,
            play=self._play,
            book=self._book,
            seed=self._config.seed,
            num_threads=num_threads,
            time_limit_s=self.time_limit_s,
            stop=self._context.stop.is_set,
        )

    def _rate_in_environment(self, model: int) -> Rating | None:
        """Plays what a model lacks; returns its rating if it played any episodes."""
        until_s: float | None = None

        def goes_on() -> bool:
            nonlocal until_s
            if self._context.stop.is_set():
                raise MatchStopped
            if until_s is None:
                until_s = time.monotonic() + self.time_limit_s
            return time.monotonic() < until_s

        earlier = [number for number in earlier_models(self._run) if number < model]
        name, num_records = f"{model:06d}", len(self._records)
        num_played = dict.fromkeys((*earlier[:1], *earlier[-1:]), 0)
        for record in self._records:
            if record.a == name and int(record.b) in num_played:
                num_played[int(record.b)] += record.to_pairing().tally.num_games
        for number in sorted(num_played, key=num_played.__getitem__):
            num_left = _MATCH_EPISODES - num_played[number]
            if num_left <= 0 or (until_s is not None and not goes_on()):
                break
            own, other = self._side(model), self._side(number)
            if own is None or other is None:
                break  # the gate has removed a model meanwhile
            self._records.append(self._play_match(own, other, num_left, goes_on))
        if len(self._records) == num_records:
            return None
        return team_ratings(self._records)[name]

    def _side(self, number: int) -> Side | None:
        backend = open_kept(self._config, self._run, number)
        if backend is None:
            return None
        acting = Acting(
            mode="sampled" if self._agent.draws_actions else "epsilon",
            epsilon=_MATCH_EPSILON,
        )
        return Side(self._agent, backend, f"{number:06d}", acting)

    def _play_match(
        self, own: Side, other: Side, num_left: int, goes_on: Callable[[], bool]
    ) -> MatchRecord:
        """Plays the missing episodes of a match, at least 8, and records the result."""
        self._context.progress({"stage": "rating"})
        task = self._config.task
        seed = (self._config.seed + 1 + len(self._records)) % (MAX_SEED + 1)
        make = functools.partial(envs.make, task, _MATCH_COPIES, seed)
        timeout_s = self._agent.actor.step_timeout_s
        with closing(envs.TimelyEnv(make, timeout_s, task)) as env:
            tally = play_episodes(
                env,
                own.policy,
                own.backend,
                max(num_left, _MATCH_COPIES),
                model=own.model,
                max_steps=_MATCH_STEPS,
                acting=own.acting,
                seed=seed,
                against=other,
                goes_on=goes_on,
            ).tally
        assert tally is not None
        record = MatchRecord(
            task=task,
            a=own.model,
            b=other.model,
            wins_a=tally.wins,
            draws=tally.draws,
            wins_b=tally.losses,
            num_simulations=0,
            opening_plies=0,
            seed=seed,
        )
        publish_record(self._run, own.model, record)
        return record


def open_player(
    entry: Path,
    config: RunConfig,
    play: PlayConfig,
    inference: InferenceConfig,
    num_threads: int,
) -> ModelPlayer:
    """Returns a player whose search uses a model of a run.

    Args:
        entry: The model's folder, named by its number.
        config: The run's config.
        play: The settings of the search.
        inference: The devices, backend and batches that evaluate the network.
        num_threads: Number of threads that evaluate the network.

    Raises:
        RunError: The model is damaged.
    """
    model = config.load_model(entry)
    outputs = search_outputs(scores=play.search.score_weight > 0)
    backend = open_backend(model.path, inference, num_threads, outputs=outputs)
    return ModelPlayer(entry.name, config.task, backend, play)
