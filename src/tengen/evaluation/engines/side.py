"""Engines as a side of a match: a process a game, all of a thread asked at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from tengen.evaluation.engines.gomocup_client import GomocupEngine
from tengen.evaluation.engines.gomocup_seat import GomocupSeat
from tengen.evaluation.engines.gtp_client import GtpEngine
from tengen.evaluation.engines.gtp_seat import GtpSeat
from tengen.evaluation.engines.process import EngineProcess
from tengen.evaluation.engines.seat import MoveRefusedError, Seat
from tengen.evaluation.played_game import Dispute
from tengen.evaluation.players import EnginePlayer, GomocupPlayer
from tengen.evaluation.sides import Side
from tengen.games import Game, go_result, open_game

__all__ = ["EngineReport", "EngineSide", "check_engine"]


@dataclass(frozen=True)
class EngineReport:
    """What was seen of an engine besides its results."""

    num_scored: int = 0
    """Games of two passes at the end that the engine scored as well."""
    num_disagreements: int = 0
    """Those of them that it scored otherwise."""
    num_other_winners: int = 0
    """Those of these that another side won, as it scored them."""
    first_disagreement: str = ""
    """The first of them."""
    num_illegal: int = 0
    """Games that it lost by a move that is not legal."""
    first_illegal: str = ""
    """The first of them."""

    @staticmethod
    def of(sides: Sequence[EngineSide]) -> EngineReport:
        """Returns what the sides of one engine saw, all threads together."""
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
    """One engine in the games of one thread, each with a process of its own.

    Args:
        game: What is played.
        player: The engine.
        num_slots: Games at once.

    Raises:
        UsageError: The engine's protocol has no such game.
    """

    def __init__(self, game: Game, player: EnginePlayer, num_slots: int) -> None:
        player.check_game(game.name)
        self._game = game
        self._player = player
        self._free: list[Seat] = []
        self._seats: dict[int, Seat] = {}  # by game
        self._num_seen = 0  # finished games that were looked at
        self._pool = ThreadPoolExecutor(num_slots, thread_name_prefix="engine")
        self._stopped = False
        self.num_scored = 0
        """Games that the engine scored too."""
        self.disagreements: dict[int, str] = {}
        """By game: those that it scored otherwise."""
        self.num_other_winners = 0
        """Of these games, as it scored them."""
        self.illegal: dict[int, str] = {}
        """By game: moves of it that are not legal."""
        self._disputes: dict[int, Dispute] = {}  # by game

    def move(self, match: Any, player: int) -> None:
        """Asks for one move in every game that waits for one.

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
                    self._seats[turn.index] = self._seat()
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
                # The core ends no game without a result; the dispute takes it away.
                match.resign(turn.index)
            else:
                self._play(match, turn, answer)

    def dispute(self, index: int) -> Dispute | None:
        """Returns the move of a game that the engine refuses."""
        return self._disputes.get(index)

    def illegal_move(self, index: int) -> str:
        """Returns the engine's move that ended a game; empty where none did."""
        return self.illegal.get(index, "")

    def finish(self, match: Any, player: int) -> None:
        """Scores what is left and lets the engines leave."""
        self._score(match)
        for seat in self._free:
            seat.engine.close()

    def stop(self) -> None:
        """Ends every engine."""
        self._stopped = True
        for seat in [*self._free, *self._seats.values()]:
            seat.engine.kill()
        self._pool.shutdown(wait=False)

    def close(self) -> None:
        """Waits for the ends of the engines."""
        self._pool.shutdown()
        for seat in [*self._free, *self._seats.values()]:
            seat.engine.close()

    def _seat(self) -> Seat:
        if self._free:
            return self._free.pop()
        return _sit_down(self._game, self._player)

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

    def _leave(self, seat: Seat) -> None:
        """Lets an engine play another game, or ends it where it cannot."""
        self._free.append(seat)  # so that ``stop`` finds it
        try:
            is_free = seat.is_free()
        except Exception:
            if self._stopped:
                return
            raise
        if not is_free:
            self._free.remove(seat)
            seat.engine.close()

    def _score(self, match: Any) -> None:
        """Compares the scores of games that have finished since the last time."""
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

    Each of its answers may take ``answer_s``, as in a match.

    Args:
        player: The engine.
        task: A game of its protocol.

    Raises:
        UsageError: It cannot be started, or does not speak its protocol.
        RunError: It does not answer, or refuses the game.
    """
    seat = _sit_down(open_game(task), player)
    with seat.engine:
        seat.set_up()


def _sit_down(game: Game, player: EnginePlayer) -> Seat:
    """Returns an engine that was started for a game. Blocks."""
    engine: EngineProcess
    make: Callable[[], Seat]
    if isinstance(player, GomocupPlayer):
        engine = GomocupEngine(player.command, player.answer_s)
        make = partial(GomocupSeat, game, engine, player.turn_s)
    else:
        engine = GtpEngine(player.command, player.answer_s)
        make = partial(GtpSeat, game, engine)
    try:
        return make()
    except BaseException:
        engine.close()
        raise


def _first(notes: dict[int, str]) -> str:
    """Returns what is noted of the first game, nothing where there is none."""
    return notes[min(notes)] if notes else ""


def _points(score: str) -> float | None:
    """Returns Black's lead of a score, None where there is none to read."""
    if score.strip() == "0":
        return 0.0
    match = re.fullmatch(r"\s*([BbWw])\+([0-9]{1,4}(?:\.[0-9]{1,3})?)\s*", score)
    if match is None:
        return None
    return float(match[2]) * (1 if match[1] in "Bb" else -1)
