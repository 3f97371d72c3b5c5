"""What a run, a board and a search look like: small SVG and HTML without scripts.

Pure functions of what they are given. ``Markup`` is text in which all that came from
elsewhere is escaped; whoever makes a page puts it together of that alone. Nothing is
fetched: an output stands by itself in a notebook, a mail or a file.
"""

from tengen.drawing.board import Board, Heat, board_svg, position_figure, read_board
from tengen.drawing.chart import Chart, Series, chart_svg, shown_number
from tengen.drawing.markup import Markup, element, fragment, text
from tengen.drawing.page import FRAGMENT_STYLE, details, page, table

__all__ = [
    "FRAGMENT_STYLE",
    "Board",
    "Chart",
    "Heat",
    "Markup",
    "Series",
    "board_svg",
    "chart_svg",
    "details",
    "element",
    "fragment",
    "page",
    "position_figure",
    "read_board",
    "shown_number",
    "table",
    "text",
]
