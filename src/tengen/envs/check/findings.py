"""What a check of an environment found, one line each."""

from __future__ import annotations

from dataclasses import dataclass

from tengen.envs.copies import one_line

__all__ = ["CannotGoOnError", "Finding", "Findings"]


class CannotGoOnError(Exception):
    """What was found leaves nothing to look at further; it is told already."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is not as it must be."""

    rule: str
    """Which rule, a name that stays: ``step.reward``."""
    is_broken: bool
    """Whether the contract is broken; else it is a warning."""
    message: str
    """``<name> (<what was seen>) <what must be>; <what to do>``."""


class Findings:
    """Findings in the order of discovery, the first of each rule.

    A rule that is broken at one step is mostly broken at every step.
    """

    def __init__(self) -> None:
        self._found: dict[str, Finding] = {}

    @property
    def all(self) -> list[Finding]:
        """Every finding."""
        return list(self._found.values())

    @property
    def num_broken(self) -> int:
        """Rules that are broken."""
        return sum(finding.is_broken for finding in self.all)

    def broken(self, rule: str, name: str, seen: object, must: str) -> None:
        """Notes that the contract is broken.

        Args:
            rule: See ``Finding``.
            name: Of what is wrong, ``reward``.
            seen: What it was.
            must: What it must be, and what to do: ``must be finite; correct it``.
        """
        self._add(rule, True, f"{name} ({one_line(seen, 200)}) {must}")

    def warning(self, rule: str, name: str, seen: object, must: str) -> None:
        """Notes what may be meant, and mostly is not; as ``broken``."""
        self._add(rule, False, f"{name} ({one_line(seen, 200)}) {must}")

    def refused(self, rule: str, message: object) -> None:
        """Notes that the contract is broken, in the words of an error's line."""
        self._add(rule, True, one_line(message, 1000))

    def _add(self, rule: str, is_broken: bool, message: str) -> None:
        finding = Finding(rule=rule, is_broken=is_broken, message=message)
        self._found.setdefault(rule, finding)
