"""Finds command lines of tengen in manifests, scripts and pages, and parses them."""

from __future__ import annotations

import argparse
import functools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.manifests.overlay import Overlay

from tengen.cli import parse_command
from tengen.errors import UsageError
from tengen.launch import check_launch
from tengen.recipes.resolve import new_config
from tengen.roles import RunConfig

__all__ = [
    "Typed",
    "all_commands",
    "config_of",
    "container_commands",
    "entrypoint_commands",
    "page_commands",
    "parse",
    "parsed_commands",
    "script_commands",
]

# The images' ENTRYPOINT, which a container without a command has.
_ENTRYPOINT = ("tengen",)
# What "tengen" follows where it is a name and no program.
_BEFORE_A_NAME = ("--tag", "-n", "--namespace", "namespace", "echo", "from", "import")
_OPERATORS = frozenset([";", "&&", "||", "|", "&", ">", ">>", "<", "2>", "2>&1", ")"])


@dataclass(frozen=True)
class Typed:
    """A command line of tengen, and where it stands."""

    document: Mapping[str, Any]
    """The object that has it; empty of a file."""
    path: str
    """Of the field in the object, or ``FILE:LINE``."""
    words: tuple[str, ...]
    """What follows ``tengen``."""


def parse(typed: Typed) -> argparse.Namespace:
    """Returns the arguments as tengen itself takes them.

    Raises:
        UsageError: It does not take them, or of ``train`` the task, the agent or a
            setting.
    """
    return _taken(typed.words)[0]


def config_of(typed: Typed) -> RunConfig | None:
    """Returns the config that ``train`` gives a new run; None of another command.

    Raises:
        UsageError: As ``parse``.
    """
    return _taken(typed.words)[1]


@functools.cache
def _taken(words: tuple[str, ...]) -> tuple[argparse.Namespace, RunConfig | None]:
    command, args = parse_command(words)
    if command.name != "train":
        return args, None
    config = new_config(
        args.task,
        agent=args.agent,
        recipe=args.recipe,
        launch=args.launch,
        actors=args.actors,
        minutes=args.minutes,
        games=args.games,
        frames=args.frames,
        seed=args.seed,
        settings=args.settings,
    )
    if args.launch is not None:
        check_launch(args.launch, config)
    return args, config


def parsed_commands(overlay: Overlay) -> Iterator[tuple[Typed, argparse.Namespace]]:
    """Yields those of an overlay that tengen takes, with their arguments."""
    for typed in all_commands(overlay):
        try:
            yield typed, parse(typed)
        except UsageError:
            continue  # check_commands tells


def all_commands(overlay: Overlay) -> list[Typed]:
    """Returns those of an overlay, whether tengen takes them or not."""
    return [*entrypoint_commands(overlay), *container_commands(overlay)]


def container_commands(overlay: Overlay) -> Iterator[Typed]:
    """Yields those of containers: their arguments, or a shell's script."""
    for pod in overlay.pods():
        for path, container in pod.containers():
            command = container.get("command", ())
            if not command and pod.ray_params is not None:
                continue  # KubeRay writes it
            if not command and "submitter" in pod.path.lower():
                continue  # so it does there
            words = [*(command or _ENTRYPOINT), *container.get("args", ())]
            if any("\n" in word or " tengen " in word for word in words):
                for line, found in _of_lines("\n".join(words)):
                    yield Typed(pod.document, f"{path}, line {line}", found)
                continue
            if "tengen" in words:
                place = words.index("tengen") + 1
                yield Typed(pod.document, path, tuple(map(str, words[place:])))


def entrypoint_commands(overlay: Overlay) -> Iterator[Typed]:
    """Yields those that Ray is to run."""
    for one in overlay.of_kind("RayJob"):
        words = shlex.split(one["spec"]["entrypoint"])
        for found in _of_words(words):
            yield Typed(one, "spec.entrypoint", found)


def script_commands(path: Path) -> Iterator[Typed]:
    """Yields those of a shell script.

    A variable stands for what the script gives it where nothing is set, ``${RUN:-x}``,
    or else for 1.
    """
    text = path.read_text()
    values = dict(re.findall(r'^(\w+)="?\$\{\w+:-([^}"]*)\}"?$', text, re.M))
    for line, found in _of_lines(text, values):
        yield Typed({}, f"{path.name}:{line}", found)


def page_commands(path: Path) -> Iterator[Typed]:
    """Yields those of a page in Markdown: in blocks, and in backticks."""
    text = path.read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
    rest = re.sub(r"(?ms)^```.*?^```", "", text)
    # First all spans, then those of tengen: a pattern that skips spans would pair the
    # end of one with the beginning of the next.
    spans = re.findall(r"`([^`]*)`", rest)
    for block in blocks:
        # What stands far to the right explains.
        plain = re.sub(r"(?m)\s{3,}(?!-).*$", "", block)
        for line, found in _of_lines(plain):
            yield Typed({}, f"{path.name}, block line {line}", found)
    for span in filter(re.compile(r"(^|\s)tengen [a-z]").search, spans):
        for _, found in _of_lines(span):
            yield Typed({}, f"{path.name}, {span}", found)


def _of_lines(
    text: str, values: Mapping[str, str] | None = None
) -> Iterator[tuple[int, tuple[str, ...]]]:
    number = 1
    for line in re.sub(r"\\\n", "\0", text).split("\n"):
        joined = line.replace("\0", " ")
        if re.search(r"\btengen\s", joined) and not joined.lstrip().startswith("#"):
            for found in _of_words(_words(_expanded(joined, values or {}))):
                yield number, found
        number += 1 + line.count("\0")


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


def _of_words(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yields what follows each word ``tengen`` that is a program's name."""
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        if word != "tengen" or before in _BEFORE_A_NAME:
            continue
        rest = words[place + 1 :]
        end = next((i for i, one in enumerate(rest) if one in _OPERATORS), len(rest))
        if rest[:end]:
            yield tuple(rest[:end])
