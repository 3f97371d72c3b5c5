"""Findings of a check of an environment, one line each."""

from __future__ import annotations

from dataclasses import dataclass

from tengen.envs.copies import one_line

__all__ = ["CannotGoOnError", "Finding", "Findings"]


class CannotGoOnError(Exception):
    """A failure that was noted already makes further checks impossible."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One failure of an environment."""

    rule: str
    """The rule's name, which never changes: ``step.reward``."""
    is_broken: bool
    """Whether the contract is broken; otherwise the finding is a warning."""
    message: str
    """``<name> (<what was seen>) <what must be>; <what to do>``."""


class Findings:
    """The first finding of each rule, in the order of discovery.

    Later ones are left out, because a broken rule is mostly broken at every step.
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
            name: Name of the wrong part, such as ``reward``.
            seen: The wrong value.
            must: What is right, and what to do: ``must be finite; correct it``.
        """
        self._add(rule, True, f"{name} ({one_line(seen, 200)}) {must}")

    def warning(self, rule: str, name: str, seen: object, must: str) -> None:
        """Notes what may be intended but mostly is not; see ``broken``."""
        self._add(rule, False, f"{name} ({one_line(seen, 200)}) {must}")

    def refused(self, rule: str, message: object) -> None:
        """Notes that the contract is broken, with the message of an error."""
        self._add(rule, True, one_line(message, 1000))

    def _add(self, rule: str, is_broken: bool, message: str) -> None:
        finding = Finding(rule=rule, is_broken=is_broken, message=message)
        self._found.setdefault(rule, finding)
