"""GTP engines as a side of a match: a process a game, all of a thread asked at once."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tengen import _core
from tengen.evaluation.gtp_client import GtpEngine, GtpRefusal
from tengen.evaluation.played_game import Dispute
from tengen.evaluation.players import GtpPlayer
from tengen.evaluation.sides import Side
from tengen.games import Game, go_result, open_game
from tengen.games.go_rules import rules_as_json
from tengen.games.vertices import read_vertex, write_vertex

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
    """One GTP player in the games of one thread, each with a process of its own.

    Args:
        game: A game of Go.
        player: The engine.
        num_slots: Games at once.

    Raises:
        UsageError: The game is not Go.
    """

    def __init__(self, game: Game, player: GtpPlayer, num_slots: int) -> None:
        player.check_game(game.name)
        self._game = game
        self._player = player
        self._free: list[_Seat] = []
        self._seats: dict[int, _Seat] = {}  # by game
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
            if isinstance(answer, _MoveRefused):
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

    def _seat(self) -> _Seat:
        if self._free:
            return self._free.pop()
        return _Seat(self._game, GtpEngine(self._player.command, self._player.answer_s))

    def _ask(self, turn: Any) -> str | _MoveRefused:
        try:
            return self._seats[turn.index].choose(turn.moves)
        except _MoveRefused as refused:
            return refused

    def _play(self, match: Any, turn: Any, answer: str) -> None:
        if answer.lower() == "resign":
            match.resign(turn.index)
            return
        state = self._game.new_state()
        for move in turn.moves:
            state.apply(move)
        action = read_vertex(answer, self._game.height, self._game.width)
        if action is not None and action in state.legal_actions():
            match.play(turn.index, action)
            return
        why = _why_illegal(self._game.name, turn.moves, action)
        self.illegal[turn.index] = (
            f"move {len(turn.moves) + 1} of game {turn.index}, {answer[:20]}, is not "
            f"legal in {self._game.name}: {why}"
        )
        match.resign(turn.index)

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
            self._free.append(seat)
            if list(game.moves)[-2:] != [num_points] * 2 or not seat.can_score:
                continue
            ours = go_result(self._game.name, game.moves)
            try:
                theirs = seat.score(list(game.moves))
                is_same = _points(theirs) == _points(ours)
                num_seki = 0 if is_same else seat.num_seki()
            except _MoveRefused:
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


def check_engine(player: GtpPlayer, task: str) -> None:
    """Starts an engine, lets it set up a game, and ends it. Blocks.

    Each of its answers may take ``answer_s``, as in a match.

    Args:
        player: The engine.
        task: A game of Go.

    Raises:
        UsageError: It cannot be started, or is no engine of GTP version 2.
        RunError: It does not answer, or refuses the game.
    """
    with GtpEngine(player.command, player.answer_s) as engine:
        _Seat(open_game(task), engine).set_up()


class _MoveRefused(Exception):
    """An engine refuses a legal move of its game."""

    def __init__(self, ply: int, vertex: str, words: str) -> None:
        super().__init__(words)
        self.ply = ply
        self.vertex = vertex
        self.words = words


class _Seat:
    """An engine and the game that it sits at."""

    def __init__(self, game: Game, engine: GtpEngine) -> None:
        self._game = game
        self._rules = _core.parse_go_name(game.name)
        self.engine = engine
        self.can_score = "final_score" in engine.commands
        self._moves: list[int] | None = None  # None: nothing is set up
        size = f"boardsize {game.height}"
        if game.height != game.width:
            size = f"rectangular_boardsize {game.width} {game.height}"
        engine.ask(size)
        if "kata-set-rules" in engine.commands:
            engine.ask(f"kata-set-rules {json.dumps(rules_as_json(self._rules))}")

    def set_up(self) -> None:
        """Lets the engine begin a game."""
        self._follow([])

    def choose(self, moves: list[int]) -> str:
        """Returns what the engine answers to genmove after ``moves``.

        Raises:
            _MoveRefused: It refuses one of them.
        """
        self._follow(moves)
        answer = self.engine.ask(f"genmove {self._colour(len(moves))}")
        action = read_vertex(answer, self._game.height, self._game.width)
        self._moves = None if action is None else [*moves, action]
        return answer

    def score(self, moves: list[int]) -> str:
        """Returns what the engine says of the end of a game.

        Raises:
            _MoveRefused: It refuses one of its moves.
        """
        self._follow(moves)
        return self.engine.ask("final_score")

    def num_seki(self) -> int:
        """Returns how many stones the engine calls seki, 0 where it cannot say."""
        try:
            return len(self.engine.ask("final_status_list seki").split())
        except GtpRefusal:
            return 0

    def _follow(self, moves: list[int]) -> None:
        """Brings the engine's board to the position after ``moves``."""
        known, self._moves = self._moves, None  # after a refusal nothing is set up
        if known is None or known != moves[: len(known)]:
            self.engine.ask("clear_board")
            self.engine.ask(f"komi {self._rules.komi:g}")
            height, width = self._game.height, self._game.width
            if self._rules.handicap:
                # Moves, for some engines give White points for stones of a handicap.
                for point in _core.handicap_points(height, width, self._rules.handicap):
                    self.engine.ask(f"play b {write_vertex(point, height, width)}")
            known = []
        for ply in range(len(known), len(moves)):
            vertex = write_vertex(moves[ply], self._game.height, self._game.width)
            try:
                self.engine.ask(f"play {self._colour(ply)} {vertex}")
            except GtpRefusal as refusal:
                raise _MoveRefused(ply, vertex, refusal.words) from refusal
        self._moves = list(moves)

    def _colour(self, ply: int) -> str:
        return "bw"[(ply + (self._rules.handicap > 0)) % 2]


def _first(notes: dict[int, str]) -> str:
    """Returns what is noted of the first game, nothing where there is none."""
    return notes[min(notes)] if notes else ""


def _why_illegal(name: str, moves: list[int], action: int | None) -> str:
    """Returns the rule that a move breaks, as the end of a sentence."""
    if action is None:
        return "it is no vertex"
    rules = _core.parse_go_name(name)
    superko, rules.ko = rules.ko, "simple"
    state = open_game(rules.name).new_state()
    for move in moves:
        if state.is_terminal():
            break
        state.apply(move)
    if superko != "simple" and action in state.legal_actions():
        return f"{superko} superko forbids it, give the engine that rule"
    return "the point is taken, or the stone would have no liberty"


def _points(score: str) -> float | None:
    """Returns Black's lead of a score, None where there is none to read."""
    if score.strip() == "0":
        return 0.0
    match = re.fullmatch(r"\s*([BbWw])\+([0-9]{1,4}(?:\.[0-9]{1,3})?)\s*", score)
    if match is None:
        return None
    return float(match[2]) * (1 if match[1] in "Bb" else -1)
