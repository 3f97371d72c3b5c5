"""Arguments and output of the analysis commands, as front ends read them.

There are two dialects: Leela Zero writes 10000ths, KataGo fractions. Every number is
for the side to move. ``ownership`` and ``scoreLead`` are left out if the network has no
heads for ownership and score.

Source: KataGo (lightvector/KataGo), docs/GTP_Extensions.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from tengen.games.vertices import read_vertex, write_vertex
from tengen.play.forecast import Forecast
from tengen.play.growing import ActionAnalysis, Analysis
from tengen.play.gtp.protocol import PLAYERS, GtpError, is_whole, read_whole

__all__ = ["AnalysisRequest", "info_line", "parse_analysis"]

_DEFAULT_INTERVAL_CS = 100
_MAX_INTERVAL_CS = 10_000_000
# Options of KataGo that only add output; they are accepted and ignored.
_PASSED_OVER = (
    "movesownership",
    "movesownershipstdev",
    "ownershipstdev",
    "noresultvalue",
    "pvvisits",
    "pvedgevisits",
)
# Standard errors between a value and its lower confidence bound, as in KataGo.
_LCB_STDEVS = 5.0


@dataclass(frozen=True)
class AnalysisRequest:
    """The arguments of an analysis command."""

    player: int | None
    """The side to move, 0 Black, 1 White; None for the side whose turn it is."""
    interval_s: float
    """Seconds between two lines."""
    min_moves: int = 0
    """Minimum number of moves to show; moves without visits fill it up."""
    max_moves: int = 1000
    """Maximum number of moves to show."""
    with_root: bool = False
    """Whether to show KataGo's ``rootInfo``."""
    with_ownership: bool = False
    """Whether to show the predicted ownership, if the network predicts it."""
    left_out: tuple[tuple[int, int, int], ...] = ()
    """(player, action, depth): the player may not play the action for so many plies."""


def parse_analysis(words: tuple[str, ...], board: tuple[int, int]) -> AnalysisRequest:
    """Parses ``[colour] [interval] [key value]...``.

    Args:
        words: The arguments of the command.
        board: Height and width.

    Raises:
        GtpError: An argument is invalid.
    """
    rest = [word.lower() for word in words]
    player = PLAYERS[rest.pop(0)] if rest and rest[0] in PLAYERS else None
    numbers = {"interval": _DEFAULT_INTERVAL_CS, "minmoves": 0, "maxmoves": 1000}
    if rest and is_whole(rest[0]):
        rest.insert(0, "interval")
    shown = {"rootinfo": False, "ownership": False}
    kinds: dict[int, str] = {}  # avoid or allow, by player
    left_out: list[tuple[int, int, int]] = []
    while rest:
        key, value = rest.pop(0), rest.pop(0) if rest else ""
        if key in numbers:
            numbers[key] = read_whole(value)
        elif key in shown and value in ("true", "false"):
            shown[key] = value == "true"
        elif key in _PASSED_OVER and value in ("true", "false"):
            continue
        elif key in ("avoid", "allow") and value in PLAYERS and len(rest) >= 2:
            # For each side avoid several times, or allow once.
            said = kinds.get(PLAYERS[value])
            if said is not None and (said, key) != ("avoid", "avoid"):
                raise GtpError("syntax error")
            kinds[PLAYERS[value]] = key
            left_out += _left_out(key, PLAYERS[value], rest.pop(0), rest.pop(0), board)
        else:
            raise GtpError("syntax error")
    interval_cs = min(max(numbers["interval"], 1), _MAX_INTERVAL_CS)
    return AnalysisRequest(
        player,
        interval_cs / 100,
        numbers["minmoves"],
        numbers["maxmoves"],
        with_root=shown["rootinfo"],
        with_ownership=shown["ownership"],
        left_out=tuple(left_out),
    )


def _left_out(
    key: str, player: int, vertices: str, depth: str, board: tuple[int, int]
) -> list[tuple[int, int, int]]:
    """Returns the actions that ``avoid`` or ``allow`` forbids."""
    read = [read_vertex(word, *board) for word in vertices.split(",") if word]
    actions = {action for action in read if action is not None}
    if read_whole(depth) < 1 or None in read:
        raise GtpError("syntax error")
    if key == "allow":
        actions = set(range(board[0] * board[1] + 1)) - actions
    return [(player, action, int(depth)) for action in sorted(actions)]


def info_line(
    analysis: Analysis,
    request: AnalysisRequest,
    board: tuple[int, int],
    *,
    kata: bool,
    forecast: Forecast | None = None,
) -> str:
    """Returns one line of an analysis, with the best move first.

    Args:
        analysis: With variations.
        request: What to show.
        board: Height and width.
        kata: Whether to use KataGo's dialect instead of Leela Zero's.
        forecast: The prediction for the position; None if the network makes none.
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
            f"winrate {_chance(value):.6f}{_score(analysis.score_to_play)}"
            f"{_score_stdev(forecast)}"
        )
    if request.with_ownership and kata and forecast is not None:
        owners = " ".join(f"{x:.6f}" for x in forecast.ownership_to_play.ravel())
        infos.append(f"ownership {owners}")
    return " ".join(infos)


def _info(
    row: ActionAnalysis, order: int, board: tuple[int, int], *, kata: bool
) -> str:
    vertices = [write_vertex(move, *board) for move in row.variation or (row.action,)]
    chance = _chance(row.value_to_play)
    # Nothing is known of a move without visits.
    lowest = row.value_to_play - _LCB_STDEVS * row.standard_error
    bound = _chance(lowest) if row.visits > 0 else 0.0
    if kata:
        numbers = (
            f"utility {row.utility_to_play:.6f} winrate {chance:.6f} "
            f"prior {row.prior:.6f} lcb {bound:.6f}{_score(row.score_to_play)}"
        )
    else:
        numbers = (
            f"winrate {round(10000 * chance)} prior {round(10000 * row.prior)} "
            f"lcb {round(10000 * bound)}"
        )
    return (
        f"info move {vertices[0]} visits {row.visits} {numbers} order {order} "
        f"pv {' '.join(vertices)}"
    )


def _score(score: float | None) -> str:
    return "" if score is None else f" scoreMean {score:.6f} scoreLead {score:.6f}"


def _score_stdev(forecast: Forecast | None) -> str:
    return "" if forecast is None else f" scoreStdev {forecast.score_stdev:.6f}"


def _chance(value: float) -> float:
    return 0.5 + 0.5 * min(max(value, -1.0), 1.0)
