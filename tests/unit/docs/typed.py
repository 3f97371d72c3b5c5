"""Command lines of tengen in manifests, scripts and pages."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen.cli import parse_command
from tengen.roles import RunConfig
from tests.configs import new_config

# What "tengen" follows where it is a name and no program.
_BEFORE_A_NAME = ("--tag", "-n", "--namespace", "namespace", "echo", "from", "import")
_OPERATORS = frozenset([";", "&&", "||", "|", "&", ">", ">>", "<", "2>", "2>&1", ")"])


@dataclass(frozen=True)
class Typed:
    """A command line, and where it stands."""

    where: str
    words: tuple[str, ...]
    """What follows ``tengen``."""


@functools.cache
def config_of(words: tuple[str, ...]) -> RunConfig | None:
    """Returns the config of a new run as ``train`` makes it; None of another command.

    Raises:
        UsageError: tengen does not take the words.
    """
    command, args = parse_command(words)
    if command.name != "train":
        return None
    names = (
        "agent",
        "recipe",
        "launch",
        "actors",
        "minutes",
        "games",
        "frames",
        "seed",
    )
    given = {name: getattr(args, name) for name in names}
    config = new_config(args.task, settings=args.settings, **given)
    return config


def object_commands(value: Any, where: str) -> Iterator[Typed]:
    """Yields those of a manifest: of containers, and what a RayJob runs."""
    if isinstance(value, list):
        for one in value:
            yield from object_commands(one, where)
        return
    if not isinstance(value, dict):
        return
    if "entrypoint" in value:
        yield from _commands(shlex.split(value["entrypoint"]), where)
    if "image" in value and {"command", "args"} & value.keys():
        # Without a command it is the images' ENTRYPOINT.
        words = [*value.get("command", ["tengen"]), *value.get("args", ())]
        yield from _commands(words, f"{where} {value['name']}")
    for one in value.values():
        yield from object_commands(one, where)


def script_commands(path: Path) -> Iterator[Typed]:
    """Yields those of a shell script.

    A variable stands for what the script gives it where nothing is set, ``${RUN:-x}``,
    or else for 1.
    """
    text = path.read_text()
    values = dict(re.findall(r'^(\w+)="?\$\{\w+:-([^}"]*)\}"?$', text, re.M))
    yield from _of_text(text, path.name, values)


def page_commands(path: Path) -> Iterator[Typed]:
    """Yields those of a page in Markdown: in blocks, and in backticks."""
    text = path.read_text()
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S):
        # What stands far to the right explains.
        yield from _of_text(re.sub(r"(?m)\s{3,}(?!-).*$", "", block), path.name, {})
    rest = re.sub(r"(?ms)^```.*?^```", "", text)
    for span in re.findall(r"`([^`]*)`", rest):
        if re.search(r"(^|\s)tengen [a-z]", span):
            yield from _of_text(span, f"{path.name}, {span}", {})


def _of_text(text: str, where: str, values: Mapping[str, str]) -> Iterator[Typed]:
    for line in text.replace("\\\n", " ").split("\n"):
        if re.search(r"\btengen\s", line) and not line.lstrip().startswith("#"):
            yield from _commands(_words(_expanded(line, values)), where)


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # a sentence, with an apostrophe
        return []


def _expanded(line: str, values: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return match[3] or values.get(name) or "1"

    return re.sub(r"\$(?:(\w+)|\{(\w+)(?::-([^}]*))?\})", value, line)


def _commands(words: Sequence[str], where: str) -> Iterator[Typed]:
    """Yields what follows each word ``tengen`` that is a program's name."""
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        if word != "tengen" or before in _BEFORE_A_NAME:
            continue
        rest = words[place + 1 :]
        end = next((i for i, one in enumerate(rest) if one in _OPERATORS), len(rest))
        if rest[:end]:
            yield Typed(where, tuple(rest[:end]))
