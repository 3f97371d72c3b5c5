"""Shows what a search found: the board with its policy, and a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from tengen.drawing import (
    FRAGMENT_STYLE,
    Heat,
    Markup,
    element,
    position_figure,
    table,
    text,
)
from tengen.games import open_game, position_after
from tengen.play.board import make_board_text

if TYPE_CHECKING:
    from tengen.play.growing import ActionAnalysis, Analysis

__all__ = ["analysis_html", "analysis_text"]

_Write: TypeAlias = Callable[[int], str]

_MOST_ROWS = 8
_COLUMNS = ("move", "visits", "policy", "prior", "value")


def analysis_text(found: Analysis) -> str:
    """Returns the verdict and the best moves as lines."""
    write = _writer(found)
    rows = [_COLUMNS, *(_row(action, write) for action in found.actions[:_MOST_ROWS])]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "\n".join([_verdict(found, write), *lines, *_rest(found)])


def analysis_html(found: Analysis) -> str:
    """Returns the board, coloured where the search would move, and a table."""
    write = _writer(found)
    verdict = _verdict(found, write)
    rows = [_row(action, write) for action in found.actions[:_MOST_ROWS]]
    told = element("p", text(verdict))
    rest = [element("p", text(line)) for line in _rest(found)]
    listed = element("div", told, table("The best moves", _COLUMNS, rows), *rest)
    board = [_board(found, verdict, write)] if found.task else []
    return element("div", *board, listed, style=FRAGMENT_STYLE)


def _board(found: Analysis, verdict: str, write: _Write) -> Markup:
    game = open_game(found.task)
    state = position_after(game, found.moves)
    heats = {
        action.action: Heat(action.policy, _told(action, write))
        for action in found.actions
    }
    drawn = position_figure(
        str(state),
        f"{game.name} at ply {state.ply}: {verdict}",
        layout=game.policy_layout,
        last=found.moves[-1] if found.moves else None,
        heats=heats,
    )
    return element("div", drawn, style="flex:0 1 24rem;min-width:12rem")


def _verdict(found: Analysis, write: _Write) -> str:
    words = [
        f"best move {write(found.best_action)}",
        f"value {found.value_to_play:+.2f} to play",
    ]
    if found.score_to_play is not None:
        words.append(f"score {found.score_to_play:+.1f}")
    words.append(f"{found.num_simulations:,} simulations")
    if found.is_proven:
        words.append("proven")
    return ", ".join(words)


def _rest(found: Analysis) -> list[str]:
    num_left = len(found.actions) - _MOST_ROWS
    return [f"and {num_left} more"] if num_left > 0 else []


def _row(action: ActionAnalysis, write: _Write) -> tuple[str, ...]:
    return (
        write(action.action),
        f"{action.visits:,}",
        f"{100 * action.policy:.1f} %",
        f"{100 * action.prior:.1f} %",
        f"{action.value_to_play:+.2f}" if action.visits else "-",
    )


def _told(action: ActionAnalysis, write: _Write) -> str:
    move, *cells = _row(action, write)
    named = zip(_COLUMNS[1:], cells, strict=True)
    return ", ".join([move, *(f"{column} {cell}" for column, cell in named)])


def _writer(found: Analysis) -> _Write:
    """Returns a function that writes an action as people do."""
    return make_board_text(open_game(found.task)).write if found.task else str
