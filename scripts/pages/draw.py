"""Draws the picture of README: a position, and what a trained model thinks of it.

    python -m scripts.pages.draw RUN --moves 3,4,4 --out docs/images/connect4.svg

By the package's own drawing, of a run's newest model; the columns are shaded by the
policy of its search.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import tengen
from tengen.drawing import Heat, board_svg, read_board
from tengen.games import open_game

__all__ = ["draw"]


def draw(run: str, moves: list[int], simulations: int) -> str:
    """Returns a position of a game whose actions are columns, as SVG.

    Args:
        run: Whose newest model looks at it.
        moves: That lead to it.
        simulations: Of the search.
    """
    with tengen.load(run) as player:
        found = player.analyse(moves, simulations=simulations, seed=0)
    game = open_game(found.task)
    state = game.new_state()
    for move in moves:
        state.apply(move)
    board = read_board(str(state))
    assert board is not None, game.name
    row = next(i for i, cells in enumerate(board.rows) if cells[moves[-1]] != ".")
    columns = {
        action.action: Heat(action.policy, f"{100 * action.policy:.0f} %")
        for action in found.actions
    }
    side = "O" if state.to_play else "X"
    title = (
        f"{game.name} after {len(moves)} moves, {side} to play: above each column how "
        f"much of {simulations:,} simulations' policy it has, in per cent"
    )
    shown = board_svg(board, title, last=(row, moves[-1]), columns=columns)
    # As a file it has a size of its own; in a page it fills its place.
    shown = re.sub(r"width:100%;max-width:\d+px;height:auto;", "", shown)
    return re.sub(
        r'viewBox="0 0 ([\d.]+) ([\d.]+)"',
        r'width="\1" height="\2" viewBox="0 0 \1 \2"',
        shown,
    )


def main() -> None:
    """Writes the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("--moves", required=True, help="actions, with commas between")
    parser.add_argument("--simulations", type=int, default=800)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    moves = [int(move) for move in args.moves.split(",")]
    args.out.write_text(draw(args.run, moves, args.simulations) + "\n")


if __name__ == "__main__":
    main()
