"""``tengen completion bash|zsh|fish``: prints what completes its words in a shell."""

from __future__ import annotations

import argparse
from importlib.resources import files
from typing import Any

__all__ = ["add_arguments", "completion"]

SHELLS = ("bash", "zsh", "fish")
# Where the table goes in the script of a shell.
_MARK = "    @TABLE@\n"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the argument of ``completion``."""
    parser.add_argument("shell", choices=SHELLS, help="the shell whose script to print")


def completion(args: argparse.Namespace) -> dict[str, Any]:
    """Prints the script; with ``--json`` it is in the report.

    Returns:
        ``shell`` and ``script``.
    """
    from tengen.completion.table import completions

    lines = [
        _line(args.shell, key, words) for key, words in sorted(completions().items())
    ]
    text = files("tengen.completion").joinpath(f"{args.shell}.txt").read_text()
    script = text.replace(_MARK, "".join(lines))
    if not args.json:
        print(script, end="")
    return {"shell": args.shell, "script": script}


def _line(shell: str, key: str, words: list[str]) -> str:
    """Returns the line of a shell's table that has the words of one key."""
    said = " ".join(map(_quoted, words))
    if shell == "fish":
        return f"    case {_quoted(key)}\n        printf '%s\\n' {said}\n"
    return f"    {_quoted(key)}) printf '%s\\n' {said} ;;\n"


def _quoted(word: str) -> str:
    """Returns a word between quotes; no name of tengen has one in it."""
    return "'" + word.replace("'", "") + "'"
