"""Games of gomoku between two Gomocup engines, with a referee of its own rules.

    python benchmarks/engines/gomocup_referee.py --games 1000 --size 9 --jobs 4 \
        --a "tengen gomocup runs/gomoku/9" --b "tengen gomocup runs/gomoku/9" \
        --out games.jsonl

Each game draws by the seed what a manager may send: limits of a turn, of a match, of
both, or a turn of 0 (as fast as possible); a limit of memory; the empty board, an
opening by BOARD, or one by SWAP2BOARD. In some games the last two moves are taken back
once. Colours alternate. The referee knows nothing of tengen's games: where a move is
legal and who has won is looked up here. It counts wall time from the first byte that it
sends to the answer, as managers do. An answer after the time, an illegal move, or a
process that dies or has more memory than it was allowed loses there and then. A late
answer loses nothing where the engine and the referee were ready to run and the machine,
busy with others, gave them no processor for as long as it came late: that game is
played again.

A process plays ``--games-each`` games, one after the other by RESTART. Each finished
game is a line of ``--out``; games that are there are not played again. Prints a table
of all, and one JSON object as the last line.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import dataclass, field
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

from tengen.evaluation.engines.gomocup_client import GomocupEngine

NO_LIMIT_MS = (1 << 31) - 1
GOOD = ("five", "draw")
Cell = tuple[int, int]


@dataclass
class Board:
    """Stones of black (0) and white (1) by cell; cells are (x, y)."""

    size: int
    exact: bool
    stones: dict[Cell, int] = field(default_factory=dict)

    def check(self, cell: Cell) -> None:
        """Raises Fault unless a stone may be put there."""
        if not (0 <= cell[0] < self.size and 0 <= cell[1] < self.size):
            raise Fault("illegal", f"{cell} is off the board")
        if cell in self.stones:
            raise Fault("illegal", f"{cell} is taken")

    def wins(self, cell: Cell) -> bool:
        """Whether the stone on a cell is in a row that wins."""
        colour = self.stones[cell]
        for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1)):
            length = 1
            for sign in (1, -1):
                x, y = cell[0] + sign * dx, cell[1] + sign * dy
                while self.stones.get((x, y)) == colour:
                    length += 1
                    x, y = x + sign * dx, y + sign * dy
            if length == 5 or (length > 5 and not self.exact):
                return True
        return False


@dataclass
class Control:
    """What both sides of one game are told."""

    turn_ms: int | None
    match_ms: int | None
    max_memory: int

    @property
    def text(self) -> str:
        """The kind, for the table."""
        if self.turn_ms == 0:
            return "turn 0"
        kinds = [("turn", self.turn_ms), ("match", self.match_ms)]
        return " and ".join(name for name, value in kinds if value is not None)


class Seat:
    """One engine in a game, and its clock."""

    def __init__(self, command: str, size: int) -> None:
        # Beyond any limit: what is late is seen, and not only that it is.
        self.engine = GomocupEngine(command, answer_s=120.0)
        self.engine.start(size)
        self.num_games = 0

    def sit_down(self, control: Control, exact: bool) -> None:
        """Tells the limits of a game that begins."""
        if self.num_games > 0 and self.engine.ask("RESTART") != "OK":
            raise Fault("refused", "RESTART")
        self.num_games += 1
        self.control = control
        self.left_ms = float(control.match_ms or NO_LIMIT_MS)
        self.slack_ms: float = NO_LIMIT_MS
        self.longest_ms = 0.0
        told = {
            "timeout_turn": NO_LIMIT_MS if control.turn_ms is None else control.turn_ms,
            "timeout_match": control.match_ms or 0,
            "max_memory": control.max_memory,
            "game_type": 1,
            "rule": int(exact),
        }
        for key, value in told.items():
            self.engine.tell(f"INFO {key} {value}")

    def ask(self, line: str, *more: str) -> str:
        """Returns an answer, whose time is taken off.

        Raises:
            Fault: It came late, or the engine refuses.
            RunError: It died.
        """
        self.engine.tell(f"INFO time_left {int(self.left_ms)}")
        waits = Waits(self.engine.pid)
        begun_s = time.monotonic()
        answer = self.engine.ask(line, *more)
        took_ms = 1000 * (time.monotonic() - begun_s)
        waited_ms = waits.ms()
        if self.control.match_ms is not None:
            self.left_ms -= took_ms
        self.longest_ms = max(self.longest_ms, took_ms)
        limits = [self.left_ms + took_ms] if self.control.match_ms is not None else []
        if self.control.turn_ms:
            limits.append(self.control.turn_ms)
        if limits:
            slack_ms = min(limits) - took_ms
            self.slack_ms = min(self.slack_ms, slack_ms)
            if slack_ms < 0:
                text = f"{line}: {took_ms:.0f} ms of {min(limits):.0f}"
                raise late(-slack_ms, waited_ms, text)
        return answer


def read_cell(text: str) -> Cell:
    """Returns a cell of an answer."""
    try:
        x, y = text.split(",")
        return int(x), int(y)
    except ValueError:
        raise Fault("illegal", f"{text[:40]} is no cell") from None


def draw_control(rng: random.Random, args: argparse.Namespace) -> Control:
    """Returns limits that a manager may set."""
    kind = rng.choice(("turn", "turn", "match", "both", "both", "fast"))
    turn_ms = int(args.least_ms * (args.most_ms / args.least_ms) ** rng.random())
    match_ms = int(turn_ms * rng.uniform(5, 30))
    memory = rng.choice((0, 0, args.memory_mib << 20))
    if kind == "fast":
        return Control(0, None, memory)
    return Control(
        None if kind == "match" else turn_ms,
        None if kind == "turn" else max(match_ms, 10 * args.least_ms),
        memory,
    )


def swap2(seats: list[Seat], board: Board) -> list[Seat]:
    """Plays the opening of Swap2; returns black and white."""
    first, second = seats
    stones: list[Cell] = []

    def ask(seat: Seat) -> list[str]:
        lines = [f"{x},{y}" for x, y in stones]
        with Blame(seat):
            return seat.ask("SWAP2BOARD", *lines, "DONE").split()

    def put(cells: list[str]) -> None:
        for cell in map(read_cell, cells):
            board.check(cell)
            board.stones[cell] = len(stones) % 2
            stones.append(cell)

    offered = ask(first)
    if len(offered) != 3:
        raise Loss(first, Fault("illegal", f"offers {offered}"))
    with Blame(first):
        put(offered)
    answer = ask(second)
    chooser, other = second, first
    with Blame(second):
        if len(answer) == 2:
            put(answer)
            answer = ask(first)
            chooser, other = first, second
        if answer == ["SWAP"]:
            return [chooser, other]
        if len(answer) != 1:
            raise Fault("illegal", f"chooses {answer}")
        put(answer)
    return [other, chooser]


def play(seats: list[Seat], board: Board, rng: random.Random) -> tuple[int | None, Any]:
    """Plays one game; returns the winner's place in ``seats``, and what was seen."""
    control = seats[0].control
    opening = rng.choice(("empty", "board", "swap2"))
    sides = list(seats)
    if opening == "board":
        for ply in range(rng.randint(1, 6)):
            board.stones[rng.choice(free_cells(board))] = ply % 2
    elif opening == "swap2":
        sides = swap2(seats, board)
    takes_back = rng.random() < 0.2
    told: dict[int, bool] = {}  # whether a colour's engine has a board
    winner: int | None = None
    while len(board.stones) < board.size**2:
        colour = len(board.stones) % 2
        seat = sides[colour]
        last = next(reversed(board.stones), None)
        with Blame(seat):
            if told.get(colour) and last is not None:
                answer = seat.ask(f"TURN {last[0]},{last[1]}")
            elif last is None:
                answer = seat.ask("BEGIN")
            else:
                lines = [
                    f"{x},{y},{1 if owner == colour else 2}"
                    for (x, y), owner in board.stones.items()
                ]
                answer = seat.ask("BOARD", *lines, "DONE")
            told[colour] = True
            cell = read_cell(answer)
            board.check(cell)
            memory = most_memory_mib(seat.engine.pid) * (1 << 20)
            if control.max_memory and memory > control.max_memory:
                raise Fault("memory", f"{memory / (1 << 20):.0f} MiB")
        board.stones[cell] = colour
        if board.wins(cell):
            winner = seats.index(seat)
            break
        if takes_back and len(board.stones) >= 12 and all(told.get(c) for c in (0, 1)):
            takes_back = False
            with Blame(seat):
                take_back(seat, board, rng)
            told[1 - colour] = False
    seen = {"opening": opening, "plies": len(board.stones)}
    return winner, seen


def take_back(seat: Seat, board: Board, rng: random.Random) -> None:
    """Takes the last two stones back, and lets the other side move elsewhere.

    Args:
        seat: Whose engine made the last move; the other's gets a whole board next.
        board: What stands there.
        rng: Draws the other move.
    """
    last, before = list(board.stones)[:-3:-1]
    for cell in (last, before):
        if seat.ask(f"TAKEBACK {cell[0]},{cell[1]}") != "OK":
            raise Fault("refused", "TAKEBACK")
        del board.stones[cell]
    for cell in rng.sample(free_cells(board), len(free_cells(board))):
        board.stones[cell] = len(board.stones) % 2
        if not board.wins(cell):
            return
        del board.stones[cell]


def free_cells(board: Board) -> list[Cell]:
    """Returns the cells without a stone."""
    cells = [(x, y) for x in range(board.size) for y in range(board.size)]
    return [cell for cell in cells if cell not in board.stones]


class Table:
    """One pair of engines that plays game after game."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.seats: dict[str, Seat] = {}

    def game(self, index: int) -> dict[str, Any]:
        """Plays the game of an index; returns its line."""
        rng = random.Random(f"{self.args.seed}/{index}")
        names = ["a", "b"] if index % 2 == 0 else ["b", "a"]
        control = draw_control(rng, self.args)
        board = Board(self.args.size, self.args.exact)
        line: dict[str, Any] = {"game": index, "control": control.text}
        line |= {"turn_ms": control.turn_ms, "match_ms": control.match_ms}
        line |= {"max_memory": control.max_memory}
        try:
            for name in names:
                seat = self.seats.get(name)
                if seat is not None and seat.num_games >= self.args.games_each:
                    self.seats.pop(name).engine.close()
                if name not in self.seats:
                    command = getattr(self.args, name)
                    self.seats[name] = Seat(command, self.args.size)
                with Blame(self.seats[name]):
                    self.seats[name].sit_down(control, self.args.exact)
            seats = [self.seats[name] for name in names]
            winner, seen = play(seats, board, rng)
            line |= {"winner": None if winner is None else names[winner], **seen}
            line["end"] = "draw" if winner is None else "five"
        except Loss as loss:
            line |= loss.told(self.seats)
        for name, seat in self.seats.items():
            line[f"slack_ms_{name}"] = round(seat.slack_ms)
            line[f"longest_ms_{name}"] = round(seat.longest_ms)
            line[f"memory_mib_{name}"] = round(most_memory_mib(seat.engine.pid))
        # An answer that came late has been read, and the engine may play on.
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
    parser.add_argument("--exact", action="store_true", help="exactly five win")
    parser.add_argument("--games-each", type=int, default=100)
    parser.add_argument("--least-ms", type=int, default=200, help="of a turn")
    parser.add_argument("--most-ms", type=int, default=2000, help="of a turn")
    parser.add_argument("--memory-mib", type=int, default=1024)
    args = parser.parse_args()
    print(report(play_all(args, lambda: Table(args), GOOD), GOOD))


if __name__ == "__main__":
    main()
