"""A manager's limits: time, memory and the rule, as INFO sets them."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from tengen.games.gomoku import GomokuRules
from tengen.play.session.clock import Clock, TimeSettings

__all__ = ["ManagerLimits", "resident_bytes"]

# Managers send this if the time of a match is unlimited.
_UNLIMITED_MS = (1 << 31) - 1
# Overhead of a move on top of its search, if no manager reports the time.
_LAG_S = 0.02
# The share of the board's cells that a usual game fills.
_PLAYED_PART = 0.4
# A reused tree is copied at each move: for a moment there are two.
_NUM_TREES = 2
_LEAST_TREE_BYTES = 1 << 20
# Memory of searches beside their trees.
_SPARE_BYTES = 16 << 20
# Bits of the rule.
_EXACTLY_FIVE = 1
_OTHER_RULES = {2: "continuous games", 4: "renju", 8: "caro"}
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}")


class ManagerLimits:
    """The limits that INFO has set so far. Used by one thread.

    A limit that cannot be kept is reported by ``problem``, once a command comes that
    has an answer.

    Args:
        rules: The rules that the model plays.
        begun_s: When the process started, by the clock of ``start``.
        own_bytes: Memory of the process without any tree.
    """

    def __init__(self, rules: GomokuRules, begun_s: float, own_bytes: int) -> None:
        self._rules = rules
        self._begun_s: float | None = begun_s
        self._own_bytes = own_bytes
        self._turn_s: float | None = None
        self._match_s = math.inf
        self._told_left_s: float | None = None
        self._used_s = 0.0  # of what was told to be left, else of the match
        self._rule = _EXACTLY_FIVE if rules.exactly_five else 0
        self._max_memory = 0
        self._notes: list[str] = []

    @property
    def tree_bytes(self) -> int | None:
        """The maximum bytes of a tree; None for no limit."""
        if self._max_memory == 0:
            return None
        left = self._max_memory - self._own_bytes - _SPARE_BYTES
        return left // _NUM_TREES

    @property
    def problem(self) -> str | None:
        """The limit that cannot be kept, as a message; None if all can."""
        rule = self._rule_problem()
        if rule is not None:
            return f"rule ({self._rule}) {rule}; the model plays {self._rules.text}"
        least = self._own_bytes + _SPARE_BYTES + _NUM_TREES * _LEAST_TREE_BYTES
        if 0 < self._max_memory < least:
            return (
                f"max_memory ({self._max_memory}) must be at least {least} bytes for "
                f"the program and this model"
            )
        return None

    def take_notes(self) -> list[str]:
        """Returns the messages for the next answer, and forgets them."""
        notes, self._notes = self._notes, []
        return notes

    def set(self, text: str) -> None:
        """Takes the arguments of INFO. Unknown keys are ignored."""
        key, _, value = text.partition(" ")
        key, value = key.lower(), value.strip()
        setters: dict[str, Callable[[int], None]] = {
            "timeout_turn": self._set_turn,
            "timeout_match": self._set_match,
            "time_left": self._set_left,
            "max_memory": self._set_memory,
            "rule": self._set_rule,
        }
        if key not in setters:
            return
        if _NUMBER.fullmatch(value) is None:
            self._notes.append(f"INFO {key} ({value[:40]}) must be a whole number")
            return
        setters[key](int(value))

    def start(self, now_s: float) -> None:
        """Begins a match. The time of the first one runs from the start of the process.

        Args:
            now_s: The time.
        """
        if self._told_left_s is None:
            self._used_s = 0.0 if self._begun_s is None else now_s - self._begun_s
        self._begun_s = None

    def budget(self, ply: int) -> tuple[float | None, float | None]:
        """Returns the seconds for a move that is clear, and for one that is not.

        Both are None without a limit.

        Args:
            ply: Moves made so far.
        """
        all_s = self._match_s if self._told_left_s is None else self._told_left_s
        if self._turn_s is None and all_s == math.inf:
            return None, None
        settings = TimeSettings(
            "fischer",
            main_s=max(all_s - self._used_s, 0.0),
            move_limit_s=math.inf if self._turn_s is None else self._turn_s,
        )
        clock = Clock(settings)
        where = 0, ply, int(_PLAYED_PART * self._rules.size**2)
        return clock.budget_s(*where), clock.most_s(*where)

    def spend(self, seconds: float) -> None:
        """Subtracts the time of a move from the match's time."""
        self._used_s += seconds + _LAG_S

    def _set_turn(self, milliseconds: int) -> None:
        self._turn_s = max(milliseconds, 0) / 1000

    def _set_match(self, milliseconds: int) -> None:
        self._match_s = milliseconds / 1000 if milliseconds > 0 else math.inf

    def _set_left(self, milliseconds: int) -> None:
        is_limited = milliseconds < _UNLIMITED_MS
        self._told_left_s = max(milliseconds, 0) / 1000 if is_limited else math.inf
        self._used_s = 0.0

    def _set_memory(self, num_bytes: int) -> None:
        self._max_memory = max(num_bytes, 0)

    def _set_rule(self, mask: int) -> None:
        self._rule = mask

    def _rule_problem(self) -> str | None:
        for bit, name in _OTHER_RULES.items():
            if self._rule & bit:
                return f"is for {name}, which no model plays"
        if self._rule not in (0, _EXACTLY_FIVE):
            return "must be 0 or 1"
        if (self._rule == _EXACTLY_FIVE) != self._rules.exactly_five:
            return f"must be {1 - self._rule}"
        return None


_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Returns the resident memory; outside Linux its maximum so far."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource  # Windows does not have it.

        # In kB, but on macOS in bytes.
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
