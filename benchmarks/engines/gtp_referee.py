"""Games of Go between two GTP engines by time controls that a referee draws.

    python benchmarks/engines/gtp_referee.py --games 100 --size 9 \
        --a "tengen gtp runs/go/9" --b "tengen gtp runs/go/9" --out games.jsonl

Each game draws by the seed what a controller may send: absolute time, byo-yomi,
Canadian overtime, Fischer's added time, a time for every move, or no limit; with
``time_left`` before each move or without it; some moves of an opening; and in some
games two moves are taken back. Colours alternate. The referee has rules of its own, of
what is legal (positional superko; suicide of several stones unless ``--nosuicide``)
and of area scoring, and a clock of its own: wall time from the question to the answer.
An answer after the time, an illegal move, a refused command, or a process that dies
loses there and then; so does an engine that does not score a finished game as the rules
do, where ``--scores`` is given. A late answer loses nothing where the machine gave the
engine no processor for as long as it came late: that game is played again.

A process plays ``--games-each`` games. Each finished game is a line of ``--out``; games
that are there are not played again. Prints a table of all, and one JSON object as the
last line.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from dataclasses import dataclass
from typing import Any

from clock_games import most_memory_mib
from referees import (
    STARVED,
    Blame,
    Fault,
    Loss,
    Waits,
    add_referee_arguments,
    late,
    play_all,
    report,
)

from tengen.evaluation.engines.gtp_client import GtpEngine

GOOD = ("score", "resigned", "long")
LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
NO_LIMIT_MS = (1 << 31) - 1
Cell = tuple[int, int]
Stones = dict[Cell, int]


class Board:
    """A position of Go, and those that may not come back. Cells are (column, row)."""

    def __init__(self, size: int, allows_suicide: bool) -> None:
        self.size = size
        self.allows_suicide = allows_suicide
        self.stones: Stones = {}
        self.seen = [frozenset[tuple[Cell, int]]()]
        self.moves: list[tuple[int, Cell | None]] = []

    def after(self, colour: int, cell: Cell | None) -> Stones:
        """Returns the stones after a move.

        Raises:
            Fault: It is not legal.
        """
        if cell is None:
            return self.stones
        if cell in self.stones:
            raise Fault("illegal", f"{write(cell)} is taken")
        stones = {**self.stones, cell: colour}
        for near in self._near(cell):
            if stones.get(near) == 1 - colour:
                take(stones, self._chain(stones, near))
        own = self._chain(stones, cell)
        if own is not None:
            if len(own) == 1 or not self.allows_suicide:
                raise Fault("illegal", f"{write(cell)} is suicide")
            take(stones, own)
        if frozenset(stones.items()) in self.seen:
            raise Fault("illegal", f"{write(cell)} repeats a position")
        return stones

    def play(self, colour: int, cell: Cell | None) -> None:
        """Makes a move, as ``after``."""
        self.stones = self.after(colour, cell)
        self.moves.append((colour, cell))
        self.seen.append(frozenset(self.stones.items()))

    def undo(self) -> None:
        """Takes the last move back."""
        self.moves.pop()
        self.seen.pop()
        self.stones = dict(self.seen[-1])

    def score(self, komi: float) -> float:
        """Returns Black's area less White's and komi."""
        counts, left = [0.0, komi], self._cells() - self.stones.keys()
        for colour in self.stones.values():
            counts[colour] += 1
        while left:
            area, beside, todo = set[Cell](), set[int](), [left.pop()]
            while todo:
                area.add(cell := todo.pop())
                for near in self._near(cell):
                    if near in self.stones:
                        beside.add(self.stones[near])
                    elif near in left:
                        left.remove(near)
                        todo.append(near)
            if len(beside) == 1:
                counts[beside.pop()] += len(area)
        return counts[0] - counts[1]

    def legal(self, colour: int) -> list[Cell]:
        """Returns where a stone may be put."""
        return [cell for cell in sorted(self._cells()) if self._may(colour, cell)]

    def _may(self, colour: int, cell: Cell) -> bool:
        try:
            self.after(colour, cell)
        except Fault:
            return False
        return True

    def _cells(self) -> set[Cell]:
        return {(x, y) for x in range(self.size) for y in range(self.size)}

    def _near(self, cell: Cell) -> list[Cell]:
        x, y = cell
        cells = ((x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1))
        return [c for c in cells if min(c) >= 0 and max(c) < self.size]

    def _chain(self, stones: Stones, cell: Cell) -> set[Cell] | None:
        """Returns the chain of a stone; None where it has a liberty."""
        chain, todo = {cell}, [cell]
        while todo:
            for near in self._near(todo.pop()):
                if near not in stones:
                    return None
                if stones[near] == stones[cell] and near not in chain:
                    chain.add(near)
                    todo.append(near)
        return chain


def take(stones: Stones, chain: set[Cell] | None) -> None:
    """Takes a chain off, if it is one without a liberty."""
    for cell in chain or ():
        del stones[cell]


def write(cell: Cell | None) -> str:
    """Returns a cell as GTP has it."""
    return "pass" if cell is None else f"{LETTERS[cell[0]]}{cell[1] + 1}"


def write_score(score: float) -> str:
    """Returns Black's points less White's as GTP has them."""
    return "0" if score == 0 else f"{'W' if score < 0 else 'B'}+{abs(score):g}"


def read(text: str, size: int) -> Cell | None:
    """Returns a cell of an answer, None for a pass."""
    if text.lower() == "pass":
        return None
    column = LETTERS.find(text[:1].upper())
    row = int(text[1:]) - 1 if text[1:].isdecimal() else -1
    if not (0 <= column < size and 0 <= row < size):
        raise Fault("illegal", f"{text[:40]!r} is no point")
    return column, row


@dataclass(frozen=True)
class Control:
    """What both sides of one game are told; times are in seconds."""

    kind: str
    main_s: float = 0.0
    period_s: float = 0.0
    count: int = 0
    tells_left: bool = True

    @property
    def line(self) -> str:
        """The command that says it."""
        main, period, count = f"{self.main_s:g}", f"{self.period_s:g}", self.count
        return {
            "none": "time_settings 0 1 0",
            "absolute": f"time_settings {main} 0 0",
            "canadian": f"time_settings {main} {period} {count}",
            "every move": f"time_settings 0 {period} 1",
            "byo-yomi": f"kgs-time_settings byoyomi {main} {period} {count}",
            "fischer": f"kata-time_settings fischer {main} {period}",
        }[self.kind]


def draw_control(rng: random.Random, args: argparse.Namespace) -> Control:
    """Returns time settings that a controller may send, in whole seconds."""
    kinds = ("none", "absolute", "canadian", "every move", "byo-yomi", "fischer")
    kind = rng.choice(kinds)
    main_s = rng.randint(args.least_s, args.most_s)
    period_s, tells = rng.randint(1, max(1, args.most_s // 10)), rng.random() < 0.7
    if kind in ("canadian", "byo-yomi") and rng.random() < 0.3:
        main_s = 0
    if kind == "canadian":
        count = rng.randint(1, 10)
        return Control(kind, main_s, period_s * count, count, tells)
    if kind == "byo-yomi":
        return Control(kind, main_s, period_s, rng.randint(1, 5), tells)
    return Control(kind, main_s, period_s, 0, tells)


class Clock:
    """What one side has left, by the referee."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._main_s = control.main_s
        self._period_s, self._count = control.period_s, control.count
        self.slack_s = math.inf

    @property
    def left(self) -> tuple[int, int]:
        """The numbers of ``time_left``: whole seconds, and moves or periods."""
        is_over = self._control.kind in ("canadian", "byo-yomi") and self._main_s == 0
        if self._control.kind == "every move":
            return int(self._control.period_s), 1
        return (int(self._period_s), self._count) if is_over else (int(self._main_s), 0)

    def spend(self, took_s: float) -> float:
        """Takes a move's time off; returns what was left of all before it was lost."""
        control = self._control
        if control.kind == "none":
            return math.inf
        if control.kind == "every move":
            slack_s = control.period_s - took_s
        elif control.kind == "canadian":
            slack_s = self._main_s + self._period_s - took_s
            over_s = max(0.0, took_s - self._main_s)
            if self._main_s - took_s <= 0:
                self._period_s, self._count = self._period_s - over_s, self._count - 1
            if self._count == 0:
                self._period_s, self._count = control.period_s, control.count
        elif control.kind == "byo-yomi":
            slack_s = self._main_s + self._count * control.period_s - took_s
            over_s = max(0.0, took_s - self._main_s)
            self._count -= int(over_s // control.period_s)
        else:
            slack_s = self._main_s - took_s
        self._main_s = max(0.0, self._main_s - took_s)
        if control.kind == "fischer":
            self._main_s += control.period_s
        self.slack_s = min(self.slack_s, slack_s)
        return slack_s


class Seat:
    """One engine in a game."""

    def __init__(self, command: str) -> None:
        # Beyond any limit: what is late is seen, and not only that it is.
        self.engine = GtpEngine(command, answer_s=600.0)
        self.num_games = 0
        self.clock = Clock(Control("none"))
        self.longest_s = 0.0

    def sit_down(self, control: Control, size: int, komi: float) -> None:
        """Tells what a game begins with."""
        self.num_games += 1
        self.clock, self.longest_s = Clock(control), 0.0
        self.control = control
        for line in (f"boardsize {size}", "clear_board", f"komi {komi:g}"):
            self.engine.ask(line)
        self.engine.ask(control.line)

    def genmove(self, colour: str) -> str:
        """Returns the answer, whose time is taken off.

        Raises:
            Fault: It came late.
            RunError: The engine refuses, or died.
        """
        if self.control.tells_left and self.control.kind != "none":
            seconds, count = self.clock.left
            self.engine.ask(f"time_left {colour} {seconds} {count}")
        waits = Waits(self.engine.pid)
        begun_s = time.monotonic()
        answer = self.engine.ask(f"genmove {colour}")
        took_s = time.monotonic() - begun_s
        self.longest_s = max(self.longest_s, took_s)
        slack_s = self.clock.spend(took_s)
        if slack_s < 0:
            text = f"genmove {colour}: {took_s:.2f} s, {-slack_s:.2f} s too late"
            raise late(-1000 * slack_s, waits.ms(), text)
        return answer


def play(
    seats: list[Seat], board: Board, rng: random.Random, args: argparse.Namespace
) -> dict[str, Any]:
    """Plays one game; ``seats`` are Black and White. Returns what was seen."""

    def put(colour: int, cell: Cell | None, told: list[Seat]) -> None:
        for seat in told:
            with Blame(seat):
                seat.engine.ask(f"play {'bw'[colour]} {write(cell)}")
        board.play(colour, cell)

    for ply in range(rng.randint(0, 6)):
        put(ply % 2, rng.choice(board.legal(ply % 2)), seats)
    takes_back = rng.random() < 0.3
    ends: dict[str, Any] = {"winner": None, "end": "long"}
    while len(board.moves) < args.plies:
        colour = len(board.moves) % 2
        with Blame(seats[colour]):
            answer = seats[colour].genmove("bw"[colour])
            if answer.lower() == "resign":
                ends = {"winner": 1 - colour, "end": "resigned"}
                break
            cell = read(answer, board.size)
            board.after(colour, cell)
        put(colour, cell, [seats[1 - colour]])
        if [move for _, move in board.moves[-2:]] == [None, None]:
            score = board.score(args.komi)
            winner = None if score == 0 else int(score < 0)
            ends = {"winner": winner, "end": "score", "score": score}
            break
        if takes_back and len(board.moves) == 20:
            takes_back = False
            for _ in range(2):
                for seat in seats:
                    with Blame(seat):
                        seat.engine.ask("undo")
                board.undo()
    if ends["end"] == "score" and args.scores:
        said = write_score(ends["score"])
        for seat in seats:
            with Blame(seat):
                if (own := seat.engine.ask("final_score")) != said:
                    raise Fault("refused", f"final_score is {said}, not {own}")
    return {**ends, "plies": len(board.moves)}


class Table:
    """One pair of engines that plays game after game."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.seats: dict[str, Seat] = {}

    def game(self, index: int) -> dict[str, Any]:
        """Plays the game of an index; returns its line."""
        args, rng = self.args, random.Random(f"{self.args.seed}/{index}")
        names = ["a", "b"] if index % 2 == 0 else ["b", "a"]
        control = draw_control(rng, args)
        line: dict[str, Any] = {"game": index, "control": control.kind}
        line |= {"settings": control.line, "tells_left": control.tells_left}
        try:
            for name in names:
                seat = self.seats.get(name)
                if seat is not None and seat.num_games >= args.games_each:
                    self.seats.pop(name).engine.close()
                if name not in self.seats:
                    self.seats[name] = Seat(getattr(args, name))
                with Blame(self.seats[name]):
                    self.seats[name].sit_down(control, args.size, args.komi)
            seats = [self.seats[name] for name in names]
            seen = play(seats, Board(args.size, not args.nosuicide), rng, args)
            winner = seen.pop("winner")
            line |= {"winner": None if winner is None else names[winner], **seen}
        except Loss as loss:
            line |= loss.told(self.seats)
        for name, seat in self.seats.items():
            slack_ms = min(1000 * seat.clock.slack_s, NO_LIMIT_MS)
            line[f"slack_ms_{name}"] = round(slack_ms)
            line[f"longest_ms_{name}"] = round(1000 * seat.longest_s)
            line[f"memory_mib_{name}"] = round(most_memory_mib(seat.engine.pid))
        if line["end"] not in (*GOOD, STARVED):
            self.close()
        return line

    def close(self) -> None:
        """Ends the engines."""
        for seat in self.seats.values():
            seat.engine.close()
        self.seats = {}


def main() -> None:
    """Plays and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_referee_arguments(parser)
    parser.add_argument("--komi", type=float, default=7.5)
    parser.add_argument("--nosuicide", action="store_true", help="of several stones")
    parser.add_argument("--scores", action="store_true", help="engines must score so")
    parser.add_argument("--games-each", type=int, default=10)
    parser.add_argument("--least-s", type=int, default=5, help="of main time")
    parser.add_argument("--most-s", type=int, default=30, help="of main time")
    parser.add_argument("--plies", type=int, default=400, help="of the longest game")
    args = parser.parse_args()
    print(report(play_all(args, lambda: Table(args), GOOD), GOOD))


if __name__ == "__main__":
    main()
