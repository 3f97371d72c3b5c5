"""What a board, a curve and a search look like in a notebook: SVG without scripts.

Pure functions of what they are given. ``Markup`` is text in which all that came from
elsewhere is escaped. Nothing is fetched: a drawing stays in the saved notebook.
"""

from tengen.drawing.board import Board, Heat, board_svg, position_figure, read_board
from tengen.drawing.chart import Chart, chart_svg, shown_number
from tengen.drawing.markup import FRAGMENT_STYLE, Markup, element, table, text

__all__ = [
    "FRAGMENT_STYLE",
    "Board",
    "Chart",
    "Heat",
    "Markup",
    "board_svg",
    "chart_svg",
    "element",
    "position_figure",
    "read_board",
    "shown_number",
    "table",
    "text",
]
