"""Whole games of Go by the clock between two GTP engines, with a referee.

    python benchmarks/engines/clock_games.py go/9 --games 100 --seconds 60 \
        --a "tengen gtp runs/go/9 --ponder" \
        --b "gnugo --mode gtp --chinese-rules --level 10"

Each side has so many seconds for all its moves; the referee counts from the question to
the answer, and looks at every move by tengen's own rules. Colours alternate, and each
game has new processes, whose most memory the kernel says (VmHWM). An answer after the
time, an illegal move, or a process that dies loses there and then. A resignation is
one. A game that is not over after ``--plies`` counts for nobody.

Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from tengen import games
from tengen.errors import RunError
from tengen.evaluation.engines.gtp_client import GtpEngine
from tengen.evaluation.engines.process import EngineRefusal
from tengen.games.vertices import read_vertex, write_vertex


def most_memory_mib(pid: int) -> float:
    """Returns the most memory that a process and its children had."""
    total = 0.0
    pids = [pid]
    while pids:
        one = pids.pop()
        try:
            status = Path(f"/proc/{one}/status").read_text()
            for task in Path(f"/proc/{one}/task").iterdir():
                pids += map(int, (task / "children").read_text().split())
        except OSError:
            continue
        found = [line for line in status.splitlines() if line.startswith("VmHWM")]
        total += float(found[0].split()[1]) / 1024 if found else 0.0
    return total


class Clock:
    """One engine and what it has left."""

    def __init__(self, command: str, seconds: float, size: int, komi: float) -> None:
        self.engine = GtpEngine(command, answer_s=600.0)
        self.left_s = seconds
        self.longest_s = 0.0
        for line in (f"boardsize {size}", "clear_board", f"komi {komi:g}"):
            self.engine.ask(line)
        if "time_settings" in self.engine.commands:
            self.engine.ask(f"time_settings {seconds:g} 0 0")

    def genmove(self, colour: str) -> str:
        """Returns the answer, whose time is taken off."""
        if "time_left" in self.engine.commands:
            self.engine.ask(f"time_left {colour} {max(0, int(self.left_s))} 0")
        begun_s = time.monotonic()
        answer = self.engine.ask(f"genmove {colour}")
        took_s = time.monotonic() - begun_s
        self.left_s -= took_s
        self.longest_s = max(self.longest_s, took_s)
        return answer.lower()


def play_game(game: Any, sides: tuple[Clock, Clock], max_plies: int) -> dict[str, Any]:
    """Plays one game; returns who won, "b" or "w", and why; nobody: None."""
    state = game.new_state()
    moves: list[int] = []
    while not state.is_terminal():
        mover = state.to_play
        colour, other = "bw"[mover], "wb"[mover]
        if len(moves) >= max_plies:
            return {"winner": None, "why": "too long", "plies": len(moves)}
        try:
            answer = sides[mover].genmove(colour)
        except RunError as error:
            return {"winner": other, "why": f"died: {error}", "plies": len(moves)}
        if sides[mover].left_s < 0:
            return {"winner": other, "why": "time", "plies": len(moves)}
        if answer == "resign":
            return {"winner": other, "why": "resigned", "plies": len(moves)}
        action = read_vertex(answer, game.height, game.width)
        if action is None or action not in state.legal_actions():
            return {"winner": other, "why": f"illegal {answer}", "plies": len(moves)}
        state.apply(action)
        moves.append(action)
        vertex = write_vertex(action, game.height, game.width)
        try:
            sides[1 - mover].engine.ask(f"play {colour} {vertex}")
        except EngineRefusal as refusal:
            return {"winner": None, "why": f"disputed: {refusal.words}", "plies": 0}
    value = state.returns()[0]
    winner = None if value == 0 else "b" if value > 0 else "w"
    return {"winner": winner, "why": "score", "plies": len(moves)}


def main() -> None:
    """Plays and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task")
    parser.add_argument("--a", required=True, metavar="COMMAND")
    parser.add_argument("--b", required=True, metavar="COMMAND")
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--komi", type=float, default=7.5)
    parser.add_argument("--plies", type=int, default=400)
    args = parser.parse_args()
    game = games.open_game(args.task)
    names = ("a", "b")
    report: dict[str, Any] = {
        "games": 0,
        "wins": dict.fromkeys(names, 0),
        "ends": {},
        "lost_on_time": dict.fromkeys(names, 0),
        "illegal": dict.fromkeys(names, 0),
        "died": dict.fromkeys(names, 0),
        "least_left_s": dict.fromkeys(names, args.seconds),
        "longest_move_s": dict.fromkeys(names, 0.0),
        "most_memory_mib": dict.fromkeys(names, 0.0),
        "plies": 0,
    }
    for index in range(args.games):
        order = names if index % 2 == 0 else names[::-1]
        commands = {"a": args.a, "b": args.b}
        size, seconds = game.height, args.seconds
        sides = tuple(Clock(commands[n], seconds, size, args.komi) for n in order)
        try:
            result = play_game(game, (sides[0], sides[1]), args.plies)
            for name, side in zip(order, sides, strict=True):
                pid = side.engine.pid
                for key, value, best in (
                    ("most_memory_mib", most_memory_mib(pid), max),
                    ("longest_move_s", side.longest_s, max),
                    ("least_left_s", side.left_s, min),
                ):
                    report[key][name] = round(best(report[key][name], value), 2)
        finally:
            for side in sides:
                side.engine.close()
        report["games"] += 1
        report["plies"] += result["plies"]
        why = result["why"].split(":")[0].split()[0]
        report["ends"][why] = report["ends"].get(why, 0) + 1
        if result["winner"] is not None:
            won = order["bw".index(result["winner"])]
            report["wins"][won] += 1
            lost = "b" if won == "a" else "a"
            faults = {"time": "lost_on_time", "illegal": "illegal", "died": "died"}
            if why in faults:
                report[faults[why]][lost] += 1
                print(f"game {index}: {result}", file=sys.stderr)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
