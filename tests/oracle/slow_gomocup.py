"""A Gomocup engine for tests: python slow_gomocup.py [FAULT [FILE]].

It deterministically plays an empty cell and does not detect wins. FAULT selects what
it does wrong at its second move of a game. It writes to FILE the process ID of its
child, or for FAULT "log" every line it receives.
"""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path


class Engine:
    def __init__(self, fault: str, note: str) -> None:
        self.fault = fault
        self.note = note
        self.size = 0
        self.stones: dict[str, str] = {}
        self.num_moves = 0

    def answer(self, line: str) -> str:
        name, _, rest = line.partition(" ")
        if self.fault == "log":
            with Path(self.note).open("a") as file:
                file.write(line + "\n")
        if name == "START":
            if self.fault == "size":
                return "ERROR 20 alone"
            self.size = int(rest)
        if name == "RESTART" and self.fault == "restart":
            return "UNKNOWN RESTART"
        if name in ("START", "RESTART"):
            self.stones, self.num_moves = {}, 0
            return "hello" if self.fault == "stranger" else "OK"
        if name == "INFO":
            return ""
        if name == "BOARD":
            assert self.stones == {}
            for stone in iter(lambda: sys.stdin.readline().strip(), "DONE"):
                if self.fault == "log":
                    with Path(self.note).open("a") as file:
                        file.write(stone + "\n")
                x, y, owner = stone.split(",")
                self.stones[f"{x},{y}"] = owner
        if name == "TURN":
            assert rest not in self.stones
            self.stones[rest] = "2"
        if name in ("BEGIN", "TURN", "BOARD"):
            return self.move()
        if name == "PLAY":
            self.stones[rest] = "1"
            return rest
        return f"UNKNOWN {name}"

    def move(self) -> str:
        self.num_moves += 1
        cells = [f"{x},{y}" for y in range(self.size) for x in range(self.size)]
        free = [cell for cell in cells if cell not in self.stones]
        cell = free[zlib.crc32(repr(sorted(self.stones.items())).encode()) % len(free)]
        if self.num_moves == 2:
            cell = self.fail(cell)
        if self.fault == "suggest":
            return f"SUGGEST {cell}"
        self.stones[cell] = "1"
        talk = "MESSAGE 1,1 is good\r\nDEBUG so\r\n\r\n" if self.fault == "talk" else ""
        return talk + cell

    def fail(self, cell: str) -> str:
        if self.fault == "die":
            print("chatter\nout of order", file=sys.stderr)
            sys.exit(3)
        if self.fault == "hang":
            # A child process that must end together with the engine.
            child = subprocess.Popen(["sleep", "1000"])
            Path(self.note).write_text(str(child.pid))
            child.wait()
        if self.fault == "flood":
            while True:
                print("x" * 1000, end="", flush=True)
        if self.fault == "deny":
            return "ERROR not now"
        wrong = {"taken": next(iter(self.stones)), "off": "99,0", "word": "resign"}
        return wrong.get(self.fault, cell)


def main() -> None:
    engine = Engine(*[*sys.argv[1:], "", ""][:2])
    for line in iter(lambda: sys.stdin.readline(), ""):
        if line.strip() == "END":
            return
        text = engine.answer(line.strip())
        if text:
            print(text, end="\r\n", flush=True)


if __name__ == "__main__":
    main()
