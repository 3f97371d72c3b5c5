"""tengen command lines found in manifests, scripts and pages."""

from __future__ import annotations

import functools
import re
import shlex
from dataclasses import dataclass

from tengen.cli import parse_command
from tests.configs import new_config

# After these words "tengen" is a name and not a program.
_BEFORE_A_NAME = ("--tag", "-n", "--namespace", "namespace", "echo", "from", "import")
_OPERATORS = frozenset([";", "&&", "||", "|", "&", ">", ">>", "<", "2>", "2>&1", ")"])


@dataclass(frozen=True)
class Typed:
    """A command line, and the place where it was found."""

    where: str
    words: tuple[str, ...]
    """The arguments of ``tengen``."""


@functools.cache
def config_of(words):
    """Returns the config of a new run as ``train`` creates it; None for other commands.

    Raises:
        UsageError: tengen refuses the arguments.
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


def object_commands(value, where):
    """Yields a manifest's commands: of its containers, and of a RayJob's entrypoint."""
    if isinstance(value, list):
        for one in value:
            yield from object_commands(one, where)
        return
    if not isinstance(value, dict):
        return
    if "entrypoint" in value:
        yield from _commands(shlex.split(value["entrypoint"]), where)
    if "image" in value and {"command", "args"} & value.keys():
        # The images' ENTRYPOINT runs if a container has no command.
        words = [*value.get("command", ["tengen"]), *value.get("args", ())]
        yield from _commands(words, f"{where} {value['name']}")
    for one in value.values():
        yield from object_commands(one, where)


def script_commands(path):
    """Yields the commands of a shell script.

    A variable is replaced by its default in the script, ``${RUN:-x}``, or by 1.
    """
    text = path.read_text()
    values = dict(re.findall(r'^(\w+)="?\$\{\w+:-([^}"]*)\}"?$', text, re.M))
    yield from _of_text(text, path.name, values)


def page_commands(path):
    """Yields the commands of a Markdown page, in blocks and in backticks."""
    text = path.read_text()
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S):
        # Text after three or more spaces is an explanation.
        yield from _of_text(re.sub(r"(?m)\s{3,}(?!-).*$", "", block), path.name, {})
    rest = re.sub(r"(?ms)^```.*?^```", "", text)
    for span in re.findall(r"`([^`]*)`", rest):
        if re.search(r"(^|\s)tengen [a-z]", span):
            yield from _of_text(span, f"{path.name}, {span}", {})


def _of_text(text, where, values):
    for line in text.replace("\\\n", " ").split("\n"):
        if re.search(r"\btengen\s", line) and not line.lstrip().startswith("#"):
            yield from _commands(_words(_expanded(line, values)), where)


def _words(line):
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # prose with an apostrophe, not a command
        return []


def _expanded(line, values):
    def value(match):
        name = match[1] or match[2]
        return match[3] or values.get(name) or "1"

    return re.sub(r"\$(?:(\w+)|\{(\w+)(?::-([^}]*))?\})", value, line)


def _commands(words, where):
    """Yields the arguments after each word ``tengen`` that names the program."""
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        if word != "tengen" or before in _BEFORE_A_NAME:
            continue
        rest = words[place + 1 :]
        end = next((i for i, one in enumerate(rest) if one in _OPERATORS), len(rest))
        if rest[:end]:
            yield Typed(where, tuple(rest[:end]))
