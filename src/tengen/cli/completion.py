"""``tengen completion bash|zsh|fish``: prints a shell completion script.

The script contains a table of completions, generated from the arguments that the
commands declare, so that pressing Tab need not start Python.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from tengen import envs, games
from tengen.agents import Agent
from tengen.bundled import bundled_names, read_manifest
from tengen.cli import command_parser
from tengen.cli.table import COMMANDS
from tengen.games.openspiel import OPENSPIEL_PREFIX
from tengen.recipes.registry import recipes

__all__ = ["TASK", "add_arguments", "completion", "completions"]

_SHELLS = ("bash", "zsh", "fish")
# The line of a script's template that is replaced with the table.
_MARK = "    @TABLE@\n"

FILE, FOLDER, RUN, VALUE = "<file>", "<folder>", "<run>", "<value>"
"""Placeholders in the table for paths and for arbitrary values."""
MODEL, TASK = "<model>", "<task>"
"""Placeholders in the table for models (bundled players or folders) and for tasks."""

# Placeholders by an argument's metavar or destination, in lower case.
_KINDS = {
    "a": MODEL,
    "b": MODEL,
    "run": RUN,
    "runs": RUN,
    "model": MODEL,
    "task": TASK,
    "file": FILE,
    "csv": FILE,
    "prefix": FILE,
    "folder": FOLDER,
    "dir": FOLDER,
    "out": FOLDER,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the argument of ``completion``."""
    parser.add_argument(
        "shell", choices=_SHELLS, help="the shell whose script to print"
    )


def completion(args: argparse.Namespace) -> dict[str, Any]:
    """Generates the completion script; prints it, unless ``--json`` is given.

    Returns:
        ``shell`` and ``script``.
    """
    lines = [
        _line(args.shell, key, words) for key, words in sorted(completions().items())
    ]
    text = (files(__package__) / "data" / f"{args.shell}.txt").read_text()
    script = text.replace(_MARK, "".join(lines))
    if not args.json:
        print(script, end="")
    return {"shell": args.shell, "script": script}


def _line(shell: str, key: str, words: list[str]) -> str:
    """Returns an entry of the completion table in the syntax of ``shell``."""
    said = " ".join(map(_quoted, words))
    if shell == "fish":
        return f"    case {_quoted(key)}\n        printf '%s\\n' {said}\n"
    return f"    {_quoted(key)}) printf '%s\\n' {said} ;;\n"


def _quoted(word: str) -> str:
    """Returns ``word`` in single quotes; single quotes inside it are removed."""
    return "'" + word.replace("'", "") + "'"


def completions() -> dict[str, list[str]]:
    """Returns the completion table, which maps typed words to possible next words.

    The keys are ``""`` for the commands, ``game +`` for the second word of a command,
    ``train`` for a command's options, ``train --launch`` for an option's values,
    ``match 2`` for a command's second argument, ``serve ...`` for a repeated argument,
    `TASK` for the tasks, and `MODEL` for the bundled players. An option without a key
    takes no value.

    Imports installed packages of environments to list their names, but not torch.
    """
    table: dict[str, list[str]] = {"": ["--help", "--version"]}
    for command in COMMANDS:
        first, _, second = command.name.partition(" ")
        if first not in table[""]:
            table[""].append(first)
        if second:
            table.setdefault(f"{first} +", []).append(second)
        for key, words in _of_parser(command.name, command_parser(command)):
            table[key] = words
    table[MODEL] = bundled_names()
    table[TASK] = [*games.names(), OPENSPIEL_PREFIX, *envs.names()]
    return table


def _of_parser(
    name: str, parser: argparse.ArgumentParser
) -> Iterator[tuple[str, list[str]]]:
    """Yields the entries of the completion table for a command and its subcommands."""
    options: list[str] = []
    place = 0
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield f"{name} +", list(action.choices)
            for word, inner in action.choices.items():
                yield from _of_parser(f"{name} {word}", inner)
        elif action.option_strings:
            options += action.option_strings
            if action.nargs != 0:
                for option in action.option_strings:
                    yield f"{name} {option}", _words(action)
        elif action.nargs in ("*", "+"):
            yield f"{name} ...", _words(action)
        else:
            place += 1
            yield f"{name} {place}", _words(action)
    yield name, options


def _words(action: argparse.Action) -> list[str]:
    """Returns the possible values of an argument, or a placeholder."""
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    if action.dest == "agent":
        return sorted(Agent.kinds())
    if action.dest == "recipe":
        return [recipe.name for recipe in recipes()]
    if action.dest == "level":
        return _levels()
    if action.dest == "devices":
        return ["cpu", "cuda:0"]
    if action.dest == "task":
        return [TASK]
    shown = action.metavar if isinstance(action.metavar, str) else action.dest
    usual = FILE if action.type is Path else VALUE
    return [_KINDS.get(shown.lower(), usual)]


def _levels() -> list[str]:
    """Returns the names of the levels of all bundled players, weakest level first."""
    found: dict[str, float] = {}
    for name in bundled_names():
        for level in read_manifest(name).levels:
            found[level.name] = max(level.rating, found.get(level.name, level.rating))
    return sorted(found, key=lambda name: found[name])
