"""What the analysis commands take and write, as front ends read it.

Two dialects: that of Leela Zero, whole numbers of 10000, and that of KataGo, fractions.
A value is the side to move's. A network without a score head has no ``scoreLead``, and
a search that keeps no bounds no ``lcb``: such fields are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from tengen.games.vertices import write_vertex
from tengen.play.growing import ActionAnalysis, Analysis
from tengen.play.gtp.protocol import GtpError

__all__ = ["MAX_VARIATION", "AnalysisRequest", "info_line", "parse_analysis"]

MAX_VARIATION = 15
"""The longest variation that is shown."""

_DEFAULT_INTERVAL_CS = 100
_MAX_INTERVAL_CS = 10_000_000
_PLAYERS = {"b": 0, "black": 0, "w": 1, "white": 1}
# Options of KataGo that change what is shown, not what is searched; not shown here.
_PASSED_OVER = (
    "ownership",
    "movesownership",
    "ownershipstdev",
    "pvvisits",
    "pvedgevisits",
)


@dataclass(frozen=True)
class AnalysisRequest:
    """The arguments of an analysis command."""

    player: int | None
    """Who is to move, 0 Black, 1 White; None for whose turn it is."""
    interval_s: float
    """Between two lines."""
    min_moves: int = 0
    """Moves to show at least, unvisited ones too."""
    max_moves: int = 1000
    """Moves to show at most."""
    with_root: bool = False
    """Whether KataGo's ``rootInfo`` is shown."""


def parse_analysis(words: tuple[str, ...]) -> AnalysisRequest:
    """Returns ``[colour] [interval] [key value]...`` as a request.

    Raises:
        GtpError: A word is no such thing, or asks for what is not supported.
    """
    rest = [word.lower() for word in words]
    player = _PLAYERS[rest.pop(0)] if rest and rest[0] in _PLAYERS else None
    numbers = {"interval": _DEFAULT_INTERVAL_CS, "minmoves": 0, "maxmoves": 1000}
    if rest and rest[0].isascii() and rest[0].isdecimal():
        rest.insert(0, "interval")
    with_root = False
    while rest:
        key, value = rest.pop(0), rest.pop(0) if rest else ""
        if key in numbers:
            if not (value.isascii() and value.isdecimal() and len(value) < 10):
                raise GtpError("syntax error")
            numbers[key] = int(value)
        elif key == "rootinfo" and value in ("true", "false"):
            with_root = value == "true"
        elif key in _PASSED_OVER and value in ("true", "false"):
            continue
        elif key in ("avoid", "allow"):
            raise GtpError(f"{key} is not supported")
        else:
            raise GtpError("syntax error")
    interval_cs = min(max(numbers["interval"], 1), _MAX_INTERVAL_CS)
    return AnalysisRequest(
        player,
        interval_cs / 100,
        numbers["minmoves"],
        numbers["maxmoves"],
        with_root,
    )


def info_line(
    analysis: Analysis, request: AnalysisRequest, board: tuple[int, int], *, kata: bool
) -> str:
    """Returns one line of an analysis: its moves, the best first.

    Args:
        analysis: With variations.
        request: What is shown.
        board: Height and width.
        kata: Whether in KataGo's dialect, else in Leela Zero's.
    """
    rows = [
        row
        for order, row in enumerate(analysis.actions)
        if row.visits > 0 or order < request.min_moves
    ]
    infos = [
        _info(row, order, board, kata=kata)
        for order, row in enumerate(rows[: max(request.max_moves, 1)])
    ]
    if request.with_root and kata:
        value = analysis.value_to_play
        infos.append(
            f"rootInfo visits {analysis.num_simulations} utility {value:.6f} "
            f"winrate {_chance(value):.6f}"
        )
    return " ".join(infos)


def _info(
    row: ActionAnalysis, order: int, board: tuple[int, int], *, kata: bool
) -> str:
    vertices = [write_vertex(move, *board) for move in row.variation or (row.action,)]
    chance = _chance(row.value_to_play)
    if kata:
        numbers = (
            f"utility {row.value_to_play:.6f} winrate {chance:.6f} "
            f"prior {row.prior:.6f}"
        )
    else:
        numbers = f"winrate {round(10000 * chance)} prior {round(10000 * row.prior)}"
    return (
        f"info move {vertices[0]} visits {row.visits} {numbers} order {order} "
        f"pv {' '.join(vertices)}"
    )


def _chance(value: float) -> float:
    return 0.5 + 0.5 * min(max(value, -1.0), 1.0)
