"""``tengen doctor``: what this machine has, what will be used of it, and why."""

from __future__ import annotations

import argparse
from typing import Any

from tengen.cli.doctor.machine import Finding, check_machine
from tengen.cli.doctor.packages import check_extras, check_required
from tengen.observe.progress_line import ProgressLine

__all__ = ["add_arguments", "doctor", "examine"]

_MARKS = {"ok": "ok ", "absent": "-- ", "bad": "BAD"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds nothing: ``doctor`` takes no arguments of its own."""


def doctor(args: argparse.Namespace) -> dict[str, Any]:
    """Prints one line a check, and below it the fix of what is missing.

    Blocks for some seconds: it imports every library that training uses.

    Returns:
        ``exit_code``, 1 where something is bad, and the ``checks`` by name: ``ok``,
        ``state``, ``text`` and ``fix``.
    """
    with ProgressLine("importing what training uses"):
        checks = examine()
    if not args.json:
        width = max(map(len, checks))
        for name, found in checks.items():
            print(f"{_MARKS[found.state]} {name:<{width}}  {found.text}")
            if found.fix:
                print(f"{'':{width + 6}}fix: {found.fix}")
    return {
        "exit_code": 1 if any(one.state == "bad" for one in checks.values()) else 0,
        "checks": {
            name: {
                "ok": one.state != "bad",
                "state": one.state,
                "text": one.text,
                "fix": one.fix,
            }
            for name, one in checks.items()
        },
    }


def examine() -> dict[str, Finding]:
    """Returns every check by name, in the order in which they are told."""
    found = {**check_machine(), **check_required()}
    if found["core"].state == "ok":
        # It imports the core, whose line says what is wrong else.
        from tengen.cli.doctor.choices import check_choices

        found.update(check_choices())
    return {**found, **check_extras()}
