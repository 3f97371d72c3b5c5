"""An external engine as a side of a match, with a process per concurrent game."""

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


@dataclass(frozen=True)
class EngineReport:
    """An engine's disagreements about scores and its illegal moves in a match."""

    num_scored: int = 0
    """Number of games that the engine scored, of those that ended with two passes."""
    num_disagreements: int = 0
    """Number of games that the engine and tengen score differently."""
    num_other_winners: int = 0
    """Number of games in which the engine's score names a different winner."""
    first_disagreement: str = ""
    """Description of the first scoring disagreement; empty if there is none."""
    num_illegal: int = 0
    """Number of games that the engine lost because it played an illegal move."""
    first_illegal: str = ""
    """Description of the engine's first illegal move; empty if there is none."""

    @staticmethod
    def of(sides: Sequence[EngineSide]) -> EngineReport:
        """Returns an engine's report, merged from its ``sides`` in all threads."""
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
    """An engine in the games of one match thread, with a process per concurrent game.

    Args:
        game: The game.
        player: The engine.
        num_slots: Maximum number of concurrent games.

    Raises:
        UsageError: The engine's protocol does not support the game.
    """

    def __init__(self, game: Game, player: EnginePlayer, num_slots: int) -> None:
        player.check_game(game.name)
        self._game = game
        self._player = player
        self._free: list[EngineProcess] = []
        self._seats: dict[int, EngineProcess] = {}  # Engines in play, by game index.
        self._num_seen = 0  # Number of finished games that ``_score`` has processed.
        self._pool = ThreadPoolExecutor(num_slots, thread_name_prefix="engine")
        self._stopped = False
        self.num_scored = 0
        """Number of games that the engine scored; see ``EngineReport``."""
        self.disagreements: dict[int, str] = {}
        """Descriptions of scoring disagreements, by game index."""
        self.num_other_winners = 0
        """Number of games with different winners; see ``EngineReport``."""
        self.illegal: dict[int, str] = {}
        """Descriptions of the engine's illegal moves, by game index."""
        self._disputes: dict[int, Dispute] = {}  # Disputed games, by game index.

    def move(self, match: Any, player: int) -> None:
        """Requests a move in each game in which the engine is to move, concurrently.

        If the engine rejects a legal move, the game ends as disputed.

        Raises:
            RunError: An engine process died, timed out, or refused to set up a game or
                to move.
        """
        match.port(player).next()  # Starts new games in free slots.
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
                # Resigning ends the game in the core. The dispute replaces its result.
                match.resign(turn.index)
            else:
                self._play(match, turn, answer)

    def dispute(self, index: int) -> Dispute | None:
        """Returns the dispute of game ``index``; None if the game has a result."""
        return self._disputes.get(index)

    def illegal_move(self, index: int) -> str:
        """Returns a description of the illegal move in game ``index``, or ""."""
        return self.illegal.get(index, "")

    def finish(self, match: Any, player: int) -> None:
        """Compares the scores of the last games, and closes the idle processes."""
        self._score(match)
        for engine in self._free:
            engine.close()

    def stop(self) -> None:
        """Kills all engine processes of this side. Any thread may call this."""
        self._stopped = True
        for engine in [*self._free, *self._seats.values()]:
            engine.kill()
        self._pool.shutdown(wait=False)

    def close(self) -> None:
        """Closes all engine processes, and waits until they have exited."""
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
        """Keeps ``engine`` for another game if it can play again, or closes it."""
        self._free.append(engine)  # Before the call, so that ``stop`` can kill it.
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
        """Compares the engine's score with tengen's in newly finished games. Blocks."""
        if match.num_games == self._num_seen:
            return
        num_points = self._game.height * self._game.width
        for game in match.games(self._num_seen):
            self._num_seen += 1
            # A game has no engine process if it ended before the engine's first move.
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
                continue  # An engine that rejects the last pass cannot score the game.
            except Exception:
                if self._stopped:
                    return
                raise
            self.num_scored += 1
            if not is_same:
                self.num_other_winners += theirs[:1].upper() != ours[:1]
                seki = f", with {num_seki} stones in seki" if num_seki else ""
                self.disagreements[game.index] = (
                    f"game {game.index} is {ours}, and the engine says "
                    f"{theirs[:20]}{seki}"
                )


def check_engine(player: EnginePlayer, task: str) -> None:
    """Checks that an engine can be started and can set up a game. Blocks.

    Args:
        player: The engine.
        task: The name of a game that the engine's protocol supports.

    Raises:
        UsageError: The engine cannot be started, or does not speak its protocol.
        RunError: The engine does not respond, or rejects the game.
    """
    with player.start(open_game(task)) as engine:
        engine.set_up()


def _first(notes: dict[int, str]) -> str:
    """Returns the note about the game with the lowest index; "" if there is none."""
    return notes[min(notes)] if notes else ""


def _points(score: str) -> float | None:
    """Parses a score such as ``W+3.5``; returns Black's lead in points, or None."""
    if score.strip() == "0":
        return 0.0
    match = re.fullmatch(r"\s*([BbWw])\+([0-9]{1,4}(?:\.[0-9]{1,3})?)\s*", score)
    if match is None:
        return None
    return float(match[2]) * (1 if match[1] in "Bb" else -1)
