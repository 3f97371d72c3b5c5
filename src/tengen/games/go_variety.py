"""Games of Go on several boards and with several rules in one run.

Source: KataGo (lightvector/KataGo), ``bSizes``, ``koRules``, ``komiStdev`` and
``handicapProb`` in its self-play config. Differs from KataGo: the mean of komi is the
task's komi, not a fair komi found with searches, and handicap stones are placed on
GTP's fixed points without compensation in komi. Each combination of settings is a named
variant. Each game samples a variant, and its record stores the variant's name.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tengen import _core
from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.errors import UsageError

_MAX_STDEV = 100.0
_MAX_VARIANTS = 100_000
# The normal distribution of komi is truncated at this many standard deviations.
_MAX_DEVIATIONS = 3.0
_PARTS = re.compile(
    r"go/(?P<board>[0-9x]+)(?P<ko>/situational|/simple)?(?P<suicide>/nosuicide)?"
    r"(?:/komi=(?P<komi>-?[0-9.]+))?(?:/handicap=(?P<handicap>[0-9]+))?"
    r"(?:/plies=(?P<plies>[0-9]+))?(?P<planes>/planes=[a-z]+)?"
)
_KO_PARTS = {"positional": "", "situational": "/situational", "simple": "/simple"}
_USUAL_KOMI = 7.5

Ko = Literal["positional", "situational", "simple"]


@dataclass(frozen=True, kw_only=True)
class GoVariety:
    """The variants of Go that a run plays in addition to its task; by default none.

    Use these settings to train a network that must also play the variants. In
    measurements they did not make it stronger in the task itself, see
    docs/howto/train/go.md.
    """

    boards: tuple[str, ...] = ()
    """Board sizes, as in a task's name (``9``, ``7`` or ``7x9``), none larger than the
    task's board; empty for only the task's board."""
    board_weights: tuple[float, ...] = ()
    """Sampling weight of each board in ``boards``, above 0; empty for equal weights."""
    ko: tuple[Ko, ...] = ()
    """Ko rules to sample with equal probability; empty for the task's ko rule."""
    suicide: tuple[bool, ...] = ()
    """Suicide rules to sample with equal probability; True allows suicide. Empty for
    the task's rule."""
    komi_stdev: float = bounded(0.0, 0, _MAX_STDEV)
    """Standard deviation of komi around the task's komi, in points on 19x19, at least 0
    (1 in KataGo). On smaller boards it is scaled with the square root of their area.
    Komi is sampled within three standard deviations and rounded to half points."""
    komi_wide_share: float = bounded(0.0, 0, 1)
    """Share of games whose komi is sampled with ``komi_wide_stdev``, 0 to 1 (0.06 in
    KataGo)."""
    komi_wide_stdev: float = bounded(12.0, 0, _MAX_STDEV)
    """Replaces ``komi_stdev`` in the games of ``komi_wide_share``; at least 0 (12 in
    KataGo)."""
    handicap_share: float = bounded(0.0, 0, 1)
    """Share of games with a handicap, on boards that have handicap points; 0 to 1. The
    number of stones is uniform from 2 to the number of points. Komi does not compensate
    for the handicap, so White usually loses. KataGo has a share of 0.1, no handicap on
    boards up to 10x10, up to 5 stones on 19x19, and a komi that compensates for the
    handicap in half of these games."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is invalid or conflicts with another."""
        check_fields(self)
        for ko in self.ko:
            known = ", ".join(_KO_PARTS)
            check(
                ko in _KO_PARTS, "ko", ko, f"must be one of {known}; choose among them"
            )
        weights = self.board_weights
        check(
            len(weights) in (0, len(self.boards)) and all(w > 0 for w in weights),
            "board_weights",
            list(weights),
            "must be positive, one for each of boards; leave it out for equal weights",
        )


def variants_of(task: str, variety: GoVariety) -> list[tuple[str, float]]:
    """Returns the variants of ``task`` that a run plays, with their probabilities.

    Args:
        task: The name of the run's game.
        variety: The settings of the variants.

    Returns:
        Pairs (name, probability); probabilities are above 0 and sum to 1. The empty
        name is the task itself. The list is empty if ``variety`` has its defaults.

    Raises:
        UsageError: The task is not Go, its planes do not encode komi and the rules, or
            one of the variants does not fit the task.
    """
    if variety == GoVariety():
        return []
    parts = _PARTS.fullmatch(task)
    if parts is None:
        raise UsageError(
            f"variety (of {task}) needs a game of Go; leave actor.variety out"
        )
    if parts["planes"]:
        raise UsageError(
            f"variety (of {task}) needs planes that show komi and rules; leave "
            "actor.variety out"
        )
    game = _core.make_game(task)
    found: dict[str, float] = {}
    boards = variety.boards or (parts["board"],)
    weights = variety.board_weights or (1.0,) * len(boards)
    kos = [_KO_PARTS[ko] for ko in variety.ko] or [parts["ko"] or ""]
    suicides = ["" if may else "/nosuicide" for may in variety.suicide]
    rules = list(itertools.product(kos, suicides or [parts["suicide"] or ""]))
    for board, weight in zip(boards, weights, strict=True):
        of_board = weight / sum(weights) / len(rules)
        starts = list(_starts(board, float(parts["komi"] or _USUAL_KOMI), variety))
        if parts["handicap"]:
            handicap = f"/handicap={parts['handicap']}"
            starts = [(komi + handicap, share) for komi, share in starts]
        else:
            starts = list(_with_handicap(board, starts, variety.handicap_share))
        for (ko, suicide), (start, share) in itertools.product(rules, starts):
            plies = f"/plies={parts['plies']}" if parts["plies"] else ""
            name = f"go/{board}{ko}{suicide}{start}{plies}"
            name = "" if name == task else name
            found[name] = found.get(name, 0.0) + of_board * share
    check(
        len(found) <= _MAX_VARIANTS,
        "variety",
        f"{len(found)} games",
        f"must be at most {_MAX_VARIANTS}; lower komi_wide_stdev",
    )
    for name in found:
        try:
            game.new_state(name)
        except _core.CoreError as error:
            raise UsageError(str(error)) from error
    return list(found.items())


def _starts(
    board: str, middle: float, variety: GoVariety
) -> Iterator[tuple[str, float]]:
    """Yields pairs (part of a variant's name that states komi, probability)."""
    height, _, width = board.partition("x")
    try:
        side = math.sqrt(int(height) * int(width or height))
    except ValueError:
        side = 19.0  # Any value will do: the core reports the invalid board later.
    komis: dict[float, float] = {}
    wide = variety.komi_wide_share
    for stdev, share in (
        (variety.komi_stdev, 1 - wide),
        (variety.komi_wide_stdev, wide),
    ):
        for komi, probability in _half_points(middle, stdev * side / 19):
            komis[komi] = komis.get(komi, 0.0) + share * probability
    for komi, probability in komis.items():
        if probability > 0:
            part = "" if komi == _USUAL_KOMI else f"/komi={komi:g}"
            yield part, probability


def _half_points(middle: float, stdev: float) -> Iterator[tuple[float, float]]:
    """Yields pairs (komi, probability) of a normal distribution in half points."""
    if stdev == 0:
        yield middle, 1.0
        return

    def below(points: float) -> float:
        limited = max(-_MAX_DEVIATIONS, min(_MAX_DEVIATIONS, points / stdev))
        return math.erf(limited / math.sqrt(2.0))

    most = int(2 * _MAX_DEVIATIONS * stdev + 0.5)
    total = 2 * math.erf(_MAX_DEVIATIONS / math.sqrt(2.0))
    for steps in range(-most, most + 1):
        share = (below((steps + 0.5) / 2) - below((steps - 0.5) / 2)) / total
        yield middle + steps / 2, share


def _with_handicap(
    board: str, starts: list[tuple[str, float]], handicap_share: float
) -> Iterator[tuple[str, float]]:
    """Yields ``starts`` without a handicap, and with each one that the board allows."""
    most = _core.max_handicap(f"go/{board}") if handicap_share else 0
    for komi, share in starts:
        yield komi, share * (1 - handicap_share if most else 1)
        for stones in range(2, most + 1):
            yield f"{komi}/handicap={stones}", share * handicap_share / (most - 1)
