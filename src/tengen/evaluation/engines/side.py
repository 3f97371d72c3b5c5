"""An engine as a side of a match, with one process for each game of a thread."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tengen.evaluation.engines.process import EngineProcess, MoveRefusedError
from tengen.evaluation.played_game import Dispute
from tengen.evaluation.players import EnginePlayer
from tengen.evaluation.searcher import Side
from tengen.games import Game, go_result, open_game

__all__ = ["EngineReport", "EngineSide", "check_engine"]


@dataclass(frozen=True)
class EngineReport:
    """What a match saw of an engine, apart from its results."""

    num_scored: int = 0
    """Games that ended with two passes and that the engine scored, too."""
    num_disagreements: int = 0
    """How many of them the engine scored differently."""
    num_other_winners: int = 0
    """How many of these had another winner by the engine's score."""
    first_disagreement: str = ""
    """The first disagreement."""
    num_illegal: int = 0
    """Games that the engine lost by an illegal move."""
    first_illegal: str = ""
    """The first illegal move."""

    @staticmethod
    def of(sides: Sequence[EngineSide]) -> EngineReport:
        """Returns the report of one engine from its sides in all threads."""
        disagreements = {k: v for side in sides for k, v in side.disagreements.items()}
        illegal = {k: v for side in sides for k, v in side.illegal.items()}
        return EngineReport(
            num_scored=sum(side.num_scored for side in sides),
            num_disagreements=len(disagreements),
            num_other_winners=sum(side.num_other_winners for side in sides),
            first_disagreement=_first(disagreements),
            num_illegal=len(illegal),
            first_illegal=_first(illegal),
        )


class EngineSide(Side):
    """One engine in the games of one thread, each game with its own process.

    Args:
        game: The game.
        player: The engine.
        num_slots: Maximum number of games at once.

    Raises:
        UsageError: The engine's protocol does not have the game.
    """

    def __init__(self, game: Game, player: EnginePlayer, num_slots: int) -> None:
        player.check_game(game.name)
        self._game = game
        self._player = player
        self._free: list[EngineProcess] = []
        self._seats: dict[int, EngineProcess] = {}  # by game
        self._num_seen = 0  # finished games, already compared
        self._pool = ThreadPoolExecutor(num_slots, thread_name_prefix="engine")
        self._stopped = False
        self.num_scored = 0
        """See ``EngineReport``."""
        self.disagreements: dict[int, str] = {}
        """Scores of the engine that differ, by game."""
        self.num_other_winners = 0
        """See ``EngineReport``."""
        self.illegal: dict[int, str] = {}
        """Illegal moves of the engine, by game."""
        self._disputes: dict[int, Dispute] = {}  # by game

    def move(self, match: Any, player: int) -> None:
        """Asks for one move in each game that waits for one, in all games at once.

        A game in which the engine refuses a legal move ends there, disputed.

        Raises:
            RunError: An engine died, was too slow, or refuses to set up a game or to
                move.
        """
        match.port(player).next()  # begins games
        self._score(match)
        turns = match.turns(player)
        try:
            for turn in turns:
                if turn.index not in self._seats:
                    free = self._free
                    seat = free.pop() if free else self._player.start(self._game)
                    self._seats[turn.index] = seat
            answers = list(self._pool.map(self._ask, turns))
        except Exception:
            if self._stopped:
                return
            raise
        for turn, answer in zip(turns, answers, strict=True):
            if match.finished:
                return
            if isinstance(answer, MoveRefusedError):
                self._disputes[turn.index] = Dispute(
                    side="a" if player == 0 else "b",
                    move=answer.ply + 1,
                    vertex=answer.vertex,
                    words=answer.words,
                )
                # The core needs a result to end a game; the dispute discards it.
                match.resign(turn.index)
            else:
                self._play(match, turn, answer)

    def dispute(self, index: int) -> Dispute | None:
        """Returns the move that the engine refused in a game, if any."""
        return self._disputes.get(index)

    def illegal_move(self, index: int) -> str:
        """Returns the engine's illegal move that ended a game; empty if none did."""
        return self.illegal.get(index, "")

    def finish(self, match: Any, player: int) -> None:
        """Compares the last scores and closes the engines."""
        self._score(match)
        for engine in self._free:
            engine.close()

    def stop(self) -> None:
        """Kills every engine."""
        self._stopped = True
        for engine in [*self._free, *self._seats.values()]:
            engine.kill()
        self._pool.shutdown(wait=False)

    def close(self) -> None:
        """Waits until the engines have ended."""
        self._pool.shutdown()
        for engine in [*self._free, *self._seats.values()]:
            engine.close()

    def _ask(self, turn: Any) -> str | MoveRefusedError:
        try:
            return self._seats[turn.index].choose(turn.moves)
        except MoveRefusedError as refused:
            return refused

    def _play(self, match: Any, turn: Any, answer: str) -> None:
        seat = self._seats[turn.index]
        if seat.resigns(answer):
            match.resign(turn.index)
            return
        state = self._game.new_state()
        for move in turn.moves:
            state.apply(move)
        action = seat.read(answer)
        if action is not None and action in state.legal_actions():
            match.play(turn.index, action)
            return
        why = seat.why_illegal(turn.moves, action)
        self.illegal[turn.index] = (
            f"move {len(turn.moves) + 1} of game {turn.index}, {answer[:20]}, is not "
            f"legal in {self._game.name}: {why}"
        )
        match.resign(turn.index)

    def _leave(self, engine: EngineProcess) -> None:
        """Keeps an engine for another game, or closes it if it cannot play one."""
        self._free.append(engine)  # so that ``stop`` finds it
        try:
            is_free = engine.is_free()
        except Exception:
            if self._stopped:
                return
            raise
        if not is_free:
            self._free.remove(engine)
            engine.close()

    def _score(self, match: Any) -> None:
        """Compares the scores of the games that have finished since the last call."""
        if match.num_games == self._num_seen:
            return
        num_points = self._game.height * self._game.width
        for game in match.games(self._num_seen):
            self._num_seen += 1
            # A game may end before the engine has had a turn in it.
            seat = self._seats.pop(game.index, None)
            if seat is None:
                continue
            if not seat.can_score:
                self._leave(seat)
                continue
            self._free.append(seat)
            if list(game.moves)[-2:] != [num_points] * 2:
                continue
            ours = go_result(self._game.name, game.moves)
            try:
                theirs = seat.score(list(game.moves))
                is_same = _points(theirs) == _points(ours)
                num_seki = 0 if is_same else seat.num_seki()
            except MoveRefusedError:
                continue  # the last pass: the engine has another game to score
            except Exception:
                if self._stopped:
                    return
                raise
            self.num_scored += 1
            if not is_same:
                self.num_other_winners += theirs[:1].upper() != ours[:1]
                seki = f", which sees {num_seki} stones in seki" if num_seki else ""
                self.disagreements[game.index] = (
                    f"game {game.index} is {ours} here and {theirs[:20]} to the engine"
                    f"{seki}"
                )


def check_engine(player: EnginePlayer, task: str) -> None:
    """Starts an engine, lets it set up a game, and ends it. Blocks.

    Args:
        player: The engine.
        task: A game of its protocol.

    Raises:
        UsageError: It cannot be started, or does not speak its protocol.
        RunError: It does not answer, or refuses the game.
    """
    with player.start(open_game(task)) as engine:
        engine.set_up()


def _first(notes: dict[int, str]) -> str:
    """Returns the note of the first game; empty if there is none."""
    return notes[min(notes)] if notes else ""


def _points(score: str) -> float | None:
    """Returns Black's lead from a score; None if it has no number."""
    if score.strip() == "0":
        return 0.0
    match = re.fullmatch(r"\s*([BbWw])\+([0-9]{1,4}(?:\.[0-9]{1,3})?)\s*", score)
    if match is None:
        return None
    return float(match[2]) * (1 if match[1] in "Bb" else -1)
