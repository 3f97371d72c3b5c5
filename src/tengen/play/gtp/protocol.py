"""Parses GTP commands and formats responses, which end with an empty line.

Source: Farneback 2002, "Specification of the Go Text Protocol, version 2",
sections 2 and 3.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from tengen.games.go_rules import read_vertex, write_vertex
from tengen.play.forecast import Forecast
from tengen.play.growing import ActionAnalysis, Analysis

INTERRUPT = b"# interrupt"
"""The comment line that GoGui sends to stop a search, if the engine supports
``gogui-interrupt``."""

PLAYERS = {"b": 0, "black": 0, "w": 1, "white": 1}
"""The player of each lower-case GTP colour: 0 is Black, 1 is White."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class GtpError(Exception):
    """A GTP command failed; the response is ``?`` and the error message."""


@dataclass(frozen=True)
class Command:
    """A parsed command line from a GTP controller."""

    id: str
    """The command's ID, a number as text; empty if there is none."""
    name: str
    """The command's name; empty if the line contains only an ID."""
    words: tuple[str, ...]
    """The command's arguments."""
    text: str = field(default="", compare=False)
    """The command's arguments as one string, with the original white space."""


def parse_line(line: bytes) -> Command | None:
    """Parses a line; returns its command, or None if it is empty or a comment.

    Control characters are removed, tabs are white space, and ``#`` begins a comment.
    """
    text = _CONTROL.sub("", line.decode(errors="replace")).partition("#")[0]
    words = text.split()
    if not words:
        return None
    has_id = re.fullmatch("[0-9]{1,18}", words[0]) is not None
    number = words.pop(0) if has_id else ""
    parts = text.split(maxsplit=1 + has_id)
    rest = parts[1 + has_id].rstrip() if len(parts) > 1 + has_id else ""
    return Command(number, words[0] if words else "", tuple(words[1:]), rest)


def first_line(command: Command, *, ok: bool) -> str:
    """Returns the start of a response: ``=`` or ``?``, and the command's ID."""
    return f"{'=' if ok else '?'}{command.id}"


def answer_text(command: Command, text: str, *, ok: bool = True) -> str:
    """Returns the complete response to a command, including the final empty line.

    Args:
        command: The command.
        text: The response. Empty lines, which would end it, are removed.
        ok: Whether the command succeeded.
    """
    lines = [_CONTROL.sub("", line) for line in text.splitlines() if line.strip()]
    body = "\n".join(lines)
    return f"{first_line(command, ok=ok)}{' ' if body else ''}{body}\n\n"


def read_player(word: str) -> int:
    """Returns the player that ``word`` names: 0 for Black, 1 for White.

    Raises:
        GtpError: ``word`` is not a colour.
    """
    player = PLAYERS.get(word.lower())
    if player is None:
        raise GtpError("invalid color")
    return player


def is_whole(word: str) -> bool:
    """Returns whether ``word`` is a non-negative integer with at most nine digits."""
    return word.isascii() and word.isdecimal() and len(word) < 10


def read_whole(word: str) -> int:
    """Returns ``word`` as an integer.

    Raises:
        GtpError: ``is_whole`` is False for ``word``.
    """
    if not is_whole(word):
        raise GtpError("syntax error")
    return int(word)


def read_number(word: str) -> float:
    """Returns ``word`` as a number, which may be infinite.

    Raises:
        GtpError: ``word`` is not a number.
    """
    try:
        # Reject Python's digit separators, as in 1_000, which are not part of GTP.
        number = float(word) if word.isascii() and "_" not in word else math.nan
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise GtpError("syntax error")
    return number


def words_of(command: Command, count: int) -> tuple[str, ...]:
    """Returns a command's arguments, if there are at least ``count``.

    Raises:
        GtpError: The command has fewer than ``count`` arguments.
    """
    if len(command.words) < count:
        raise GtpError("syntax error")
    return command.words


_DEFAULT_INTERVAL_CS = 100
_MAX_INTERVAL_CS = 10_000_000
# KataGo's analysis options that only add output. They are accepted and ignored.
_PASSED_OVER = (
    "movesownership",
    "movesownershipstdev",
    "ownershipstdev",
    "noresultvalue",
    "pvvisits",
    "pvedgevisits",
)
# Number of standard errors between a move's value and its LCB, as in KataGo.
_LCB_STDEVS = 5.0


@dataclass(frozen=True)
class AnalysisRequest:
    """The parsed arguments of an analysis command."""

    player: int | None
    """The side to move in the analysis: 0 Black, 1 White, None the current side."""
    interval_s: float
    """Interval between two output lines, in seconds."""
    min_moves: int = 0
    """Minimum number of moves to show, including unvisited moves if necessary."""
    max_moves: int = 1000
    """Maximum number of moves to show in an output line."""
    with_root: bool = False
    """Whether to show statistics of the root, KataGo's ``rootInfo``."""
    with_ownership: bool = False
    """Whether to show predicted ownership, if the network predicts ownership."""
    left_out: tuple[tuple[int, int, int], ...] = ()
    """Excluded actions as (player, action, depth): ``player`` does not consider
    ``action`` within ``depth`` plies."""


def parse_analysis(words: tuple[str, ...], board: tuple[int, int]) -> AnalysisRequest:
    """Parses an analysis command's arguments: ``[colour] [interval] [key value]...``.

    Args:
        words: The arguments of the command.
        board: Height and width of the board.

    Raises:
        GtpError: An argument is invalid.
    """
    rest = [word.lower() for word in words]
    player = PLAYERS[rest.pop(0)] if rest and rest[0] in PLAYERS else None
    numbers = {"interval": _DEFAULT_INTERVAL_CS, "minmoves": 0, "maxmoves": 1000}
    if rest and is_whole(rest[0]):
        rest.insert(0, "interval")
    shown = {"rootinfo": False, "ownership": False}
    kinds: dict[int, str] = {}  # The option of each player, "avoid" or "allow".
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
            # A player may have several "avoid" options, or one "allow" option.
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
    """Returns the actions that the option ``key``, avoid or allow, excludes."""
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
    """Returns an analysis as one line of output, with the best move first.

    Args:
        analysis: The analysis, with principal variations.
        request: The requested contents of the line.
        board: Height and width of the board.
        kata: Whether to use KataGo's dialect instead of Leela Zero's.
        forecast: The forecast for the position; None if there is none.
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
    # The LCB of a move without visits is 0, the lowest possible winning chance.
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
