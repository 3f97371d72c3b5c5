"""A GTP test engine on the slow rules of Go: python slow_gtp.py [FAULT [FILE]].

It deterministically plays a legal move, except suicide, which many rules forbid and
GTP cannot name, and passes after a pass. FAULT selects what it does wrong, and FILE
is where it writes a note. FAULT "refuse D4" rejects that move of the opponent, and
"refuse" rejects every move.
"""

from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path

from slow_go import SlowGo

COLUMNS = "ABCDEFGHJKLMNOPQRST"
COMMANDS = (
    "protocol_version",
    "list_commands",
    "boardsize",
    "rectangular_boardsize",
    "clear_board",
    "komi",
    "play",
    "genmove",
    "final_score",
    "quit",
)


class Engine:
    def __init__(self, fault: str, note: str) -> None:
        self.fault = fault
        self.note = note
        self.size, self.points = "19", "7.5"
        self.num_moves_asked = 0
        self.start()

    def start(self) -> None:
        self.game = SlowGo(f"go/{self.size}/komi={self.points}")

    def answer(self, words: list[str]) -> str:
        name, *rest = words
        if name == "protocol_version":
            return "3" if self.fault == "version" else "2"
        if name == "list_commands":
            unknown = "genmove" if self.fault == "commands" else ""
            return "\n".join(word for word in COMMANDS if word != unknown)
        if name == "boardsize":
            self.size = rest[0]
        if name == "rectangular_boardsize":
            self.size = f"{rest[1]}x{rest[0]}"
        if name == "komi":
            self.points = rest[0]
        if name in ("boardsize", "rectangular_boardsize", "komi", "clear_board"):
            self.start()
        if name == "play":
            self.play("bw".index(rest[0]), self.action(rest[1]))
        if name == "genmove":
            return self.genmove()
        if name == "final_score":
            score = self.game.score()
            winner = f"{'B' if score > 0 else 'W'}+{abs(score):g}"
            is_wrong = self.fault in ("score", "seki")
            return "W+99.5" if is_wrong else winner if score else "0"
        if name == "final_status_list":
            if self.fault != "seki":
                raise ValueError("unknown command")
            return "A1 B1\nB2"
        return ""

    def play(self, colour: int, action: int) -> None:
        if self.fault == "refuse" and self.note in ("", self.vertex(action).upper()):
            raise ValueError("illegal move")
        if colour == self.game.to_play:
            self.game.apply(action)
            return
        # Handicap stones before White's first move: set up all except the first.
        assert colour == 0
        row, column = divmod(action, self.game.width)
        self.game.board[row][column] = "X"
        self.game.boards[-1] = (self.game.text(), self.game.to_play)

    def genmove(self) -> str:
        self.num_moves_asked += 1
        if self.num_moves_asked == 2:
            self.fail()
        faulty = {"resign": "resign", "taken": self.taken(), "vertex": "Z99"}
        if self.num_moves_asked == 2 and self.fault in faulty:
            return faulty[self.fault]
        moves = self.game.moves
        num_actions = self.game.num_actions()
        self.game.suicide = False
        legal = self.game.legal_actions()
        self.game.suicide = True
        action = legal[zlib.crc32(repr(moves).encode()) % len(legal)]
        if moves and moves[-1] == num_actions - 1:
            action = num_actions - 1
        self.game.apply(action)
        return self.vertex(action)

    def fail(self) -> None:
        if self.fault == "deny":
            raise ValueError("not now")
        if self.fault == "die":
            print("chatter\nout of order", file=sys.stderr)
            sys.exit(3)
        if self.fault == "garbage":
            print("hello\n", flush=True)
        if self.fault == "hang":
            # A child process that must end together with the engine.
            child = subprocess.Popen(["sleep", "1000"])
            Path(self.note).write_text(str(child.pid))
            child.wait()
        if self.fault == "flood":
            while True:
                print("= more and more", flush=True)

    def taken(self) -> str:
        text = self.game.text()
        return self.vertex(next((i for i, x in enumerate(text) if x != "."), 0))

    def action(self, vertex: str) -> int:
        if vertex.lower() == "pass":
            return self.game.num_actions() - 1
        row = self.game.height - int(vertex[1:])
        return row * self.game.width + COLUMNS.index(vertex[0].upper())

    def vertex(self, action: int) -> str:
        if action == self.game.num_actions() - 1:
            return "PASS"
        row, column = divmod(action, self.game.width)
        return f"{COLUMNS[column].lower()}{self.game.height - row}"


def main() -> None:
    engine = Engine(*[*sys.argv[1:], "", ""][:2])
    for line in sys.stdin:
        words = line.split()
        try:
            text = "= " + engine.answer(words)
        except ValueError as error:
            text = f"? {error}"
        print(f"{text}\n", flush=True)
        if words == ["quit"]:
            return


if __name__ == "__main__":
    main()
