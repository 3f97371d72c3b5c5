"""Text boards: formats and parses moves, and draws positions as text.

The game's policy layout determines the notation. If actions are cells, a move is the
letter of a column and the number of a row, counted from the bottom, such as ``e5``. Go
skips the letter I, as GTP does, so ``J5`` is in the ninth column. If actions are
columns, a move is the number of a column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tengen.games import OPENSPIEL_PREFIX, Game, State
from tengen.games.go_rules import GO_COLUMNS

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_STONES = ("X", "O")  # Stones of the first and the second player.
_COLOURS = ("31", "36")
_BOLD = "1"
_DIM = "2"


@dataclass(frozen=True)
class BoardText:
    """Draws positions of one game, and formats and parses its moves. Immutable.

    This base class supports every game: a move is the number of an action, and a
    drawing is the text of the game's state.
    """

    game: Game
    """The game whose positions and moves are shown."""

    @property
    def shape(self) -> Literal["cells", "columns", "text"]:
        """The kind of board: stones in cells, stones in columns, or text."""
        return "text"

    @property
    def letters(self) -> str:
        """The columns' letters from left to right; empty if columns have no letters."""
        return ""

    @property
    def move_help(self) -> str:
        """Description of the move notation, as the end of an English sentence."""
        return f"an action number, 0 to {self.game.num_actions - 1}"

    def write(self, action: int) -> str:
        """Returns ``action`` as text, in the game's move notation."""
        return str(action)

    def read(self, text: str) -> int | None:
        """Parses a typed move; returns its action (legal or not), or None."""
        if not re.fullmatch("[0-9]{1,6}", text.strip()):
            return None
        action = int(text)
        return action if action < self.game.num_actions else None

    def draw(self, state: State, last: int | None, colours: bool) -> str:
        """Returns a drawing of the board, without a trailing newline.

        Args:
            state: The position.
            last: The last action before ``state``, which the drawing marks, or None.
            colours: Whether to use ANSI colours.
        """
        return str(state)


@dataclass(frozen=True)
class _CellBoard(BoardText):
    """A board whose actions are cells; in some games the last action is a pass."""

    @property
    def shape(self) -> Literal["cells", "columns", "text"]:
        return "cells"

    @property
    def letters(self) -> str:
        known = GO_COLUMNS if self.game.name.startswith("go/") else _LETTERS
        return known[: self.game.width]

    @property
    def move_help(self) -> str:
        game = self.game
        middle = self.write(game.height // 2 * game.width + game.width // 2)
        column, row = self.letters.index(middle[0]) + 1, middle[1:]
        ending = ", or pass" if self._has_pass else ""
        return f'a letter and a number, "{middle}" (or "{column} {row}"){ending}'

    def write(self, action: int) -> str:
        if self._has_pass and action == self.game.num_actions - 1:
            return "pass"
        row, column = divmod(action, self.game.width)
        return f"{self.letters[column]}{self.game.height - row}"

    def read(self, text: str) -> int | None:
        text = text.strip().lower()
        if self._has_pass and text == "pass":
            return self.game.num_actions - 1
        if match := re.fullmatch(r"([a-z])[\s,]*([0-9]{1,3})", text):
            column = self.letters.lower().find(match[1])
        elif match := re.fullmatch(r"([0-9]{1,3})[\s,]+([0-9]{1,3})", text):
            column = int(match[1]) - 1
        else:
            return None
        row = self.game.height - int(match[2])
        if not (0 <= row < self.game.height and 0 <= column < self.game.width):
            return None
        return row * self.game.width + column

    def draw(self, state: State, last: int | None, colours: bool) -> str:
        height, width = self.game.height, self.game.width
        marked = None
        if last is not None and last < height * width:
            marked = divmod(last, width)
        labels = [str(height - row) for row in range(height)]
        margin = max(map(len, labels))
        rows = _rows(read_stones(state), marked, colours)
        lines = [
            f"{_paint(label.rjust(margin), _DIM, colours)}{row}"
            for label, row in zip(labels, rows, strict=True)
        ]
        footer = " " * margin + "".join(f" {letter}" for letter in self.letters)
        return "\n".join([*lines, _paint(footer, _DIM, colours)])

    @property
    def _has_pass(self) -> bool:
        return self.game.policy_layout == "cells_and_pass"


@dataclass(frozen=True)
class _ColumnBoard(BoardText):
    """A board whose actions are columns; a stone falls to the lowest empty cell."""

    @property
    def shape(self) -> Literal["cells", "columns", "text"]:
        return "columns"

    @property
    def move_help(self) -> str:
        return f"a column, 0 to {self.game.num_actions - 1}"

    def draw(self, state: State, last: int | None, colours: bool) -> str:
        stones = read_stones(state)
        marked = None
        if last is not None:
            # The last stone is the top stone of its column.
            row = next(r for r in range(self.game.height) if stones[r][last] != ".")
            marked = (row, last)
        lines = _rows(stones, marked, colours)
        footer = "".join(f" {column}" for column in range(self.game.width))
        return "\n".join([*lines, _paint(footer, _DIM, colours)])


def make_board_text(game: Game) -> BoardText:
    """Returns a text board for a game, chosen by the game's policy layout."""
    has_stones = game.num_planes >= 3 and game.width <= len(_LETTERS)
    # Exclude OpenSpiel, because each of its games orders the planes differently.
    has_stones = has_stones and not game.name.startswith(OPENSPIEL_PREFIX)
    if has_stones and game.policy_layout in ("cells", "cells_and_pass"):
        return _CellBoard(game)
    if has_stones and game.policy_layout == "columns":
        return _ColumnBoard(game)
    return BoardText(game)


def read_stones(state: State) -> list[str]:
    """Returns the board's rows as strings: ``X`` is the first player, ``O`` the second.

    Planes 1 and 2 of an observation contain the stones of the side to move and of the
    opponent, as defined by core/games/planes.h and tengen.games.stone_planes.
    """
    planes = state.observation()
    own, opponent = _STONES if state.to_play == 0 else _STONES[::-1]
    return [
        "".join(
            own if a else opponent if b else "." for a, b in zip(*rows, strict=True)
        )
        for rows in zip(planes[1], planes[2], strict=True)
    ]


def _rows(
    stones: Sequence[str], marked: tuple[int, int] | None, colours: bool
) -> list[str]:
    """Returns the board's rows as text, with parentheses around the cell ``marked``."""
    lines = []
    for row, cells in enumerate(stones):
        gaps = [" "] * (len(cells) + 1)
        if marked is not None and marked[0] == row:
            gaps[marked[1]], gaps[marked[1] + 1] = "(", ")"
        line = gaps[0]
        for column, cell in enumerate(cells):
            is_last = marked == (row, column)
            line += _stone(cell, is_last, colours) + gaps[column + 1]
        lines.append(line)
    return lines


def _stone(cell: str, is_last: bool, colours: bool) -> str:
    if cell == ".":
        return _paint(cell, _DIM, colours)
    colour = _COLOURS[_STONES.index(cell)]
    return _paint(cell, f"{_BOLD};{colour}" if is_last else colour, colours)


def _paint(text: str, code: str, colours: bool) -> str:
    return f"\033[{code}m{text}\033[0m" if colours else text
