"""The reference of commands, generated from their argument parsers."""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Iterator

from tengen.cli import COMMANDS, Command, command_parser

_WIDTH = 88

_HEAD = """# Commands

What `tengen COMMAND --help-all` prints, for every command, made of the same parsers
when this site is built.

Every command takes `--json`, which ends its output with one line that is one JSON
object, and `-h`. Exit codes are 0 done, 1 failed, 2 bad usage or config, 130
interrupted with everything saved. Every error is one line on the error stream,
`name (value) rule; what to do`.
"""


def commands_page() -> str:
    """Returns the page in Markdown; imports each command's module."""
    return "\n".join([_HEAD, *map(_section, COMMANDS)])


def _section(command: Command) -> str:
    shown = dataclasses.replace(command, rare="")
    helps = [_help(parser) for parser in _with_choices(command_parser(shown))]
    blocks = "\n".join(f"```text\n{text}```\n" for text in helps)
    return f"## tengen {command.name}\n\n{command.help.capitalize()}.\n\n{blocks}"


def _with_choices(
    parser: argparse.ArgumentParser,
) -> Iterator[argparse.ArgumentParser]:
    """Yields a parser and all of its subparsers."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in dict.fromkeys(action.choices.values()):
                yield from _with_choices(below)


def _help(parser: argparse.ArgumentParser) -> str:
    # Do not depend on the terminal's width and colours.
    parser.formatter_class = functools.partial(  # type: ignore[assignment]
        argparse.RawDescriptionHelpFormatter, width=_WIDTH
    )
    parser.color = False  # type: ignore[attr-defined,unused-ignore]
    return parser.format_help()
