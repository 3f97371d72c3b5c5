"""``tengen game new`` and ``tengen env new``: write starter files.

The files are a small working game or environment, ready for training, and its test. The
user chooses the name.
"""

from __future__ import annotations

import argparse
import importlib.util
import keyword
import re
import shlex
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from tengen.config import check
from tengen.errors import UsageError

_MAX_LENGTH = 60
# Placeholders for the module name and the class name in the template files.
_MODULE, _CLASS = "starter_module", "StarterClass"


@dataclass(frozen=True)
class _Starter:
    """The templates of a module and its test, and the commands to try afterwards."""

    kind: str
    """The first word of the command, ``game`` or ``env``."""
    source: str
    """Name of the template file for the module."""
    test: str
    """Name of the template file for the module's test."""
    after: tuple[str, ...]
    """Commands suggested to the user, with placeholders for the task and the run."""


_GAME = _Starter(
    "game",
    "game.txt",
    "game_test.txt",
    (
        "tengen game check {task}",
        "tengen train {task} --minutes 2",
        "tengen play {run} --task {task}",
    ),
)
_ENVIRONMENT = _Starter(
    "env",
    "environment.txt",
    "environment_test.txt",
    (
        "tengen env check {task}",
        "tengen train {task} --agent ppo --frames 20k",
        "tengen eval {run} --task {task} --episodes 100",
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen game new`` and ``tengen env new``."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help="name of the file, such as my_name; its class is then MyName",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="folder for the file, created if it is missing (the current one)",
    )


def game_new(args: argparse.Namespace) -> dict[str, Any]:
    """Writes a small working game and its test.

    Returns:
        ``task``, ``files`` (paths), and ``commands`` (those to try next).

    Raises:
        UsageError: The name is not valid for a new module, or a file exists.
    """
    return _write(_GAME, args)


def env_new(args: argparse.Namespace) -> dict[str, Any]:
    """Writes a small working environment and its test; reports as ``game_new``.

    Raises:
        UsageError: The name is not valid for a new module, or a file exists.
    """
    return _write(_ENVIRONMENT, args)


def _write(starter: _Starter, args: argparse.Namespace) -> dict[str, Any]:
    source, test, task = _write_files(starter, args.name, args.out)
    run = f"runs/{task.replace(':', '_')}"
    lines = [command.format(task=task, run=run) for command in starter.after]
    if importlib.util.find_spec("pytest") is not None:
        lines.insert(1, f"python -m pytest {test.name}")
    if args.out != Path():
        lines.insert(0, f"cd {shlex.quote(str(args.out))}")
    if not args.json:
        print(f"wrote {source} and {test}; their comments say what to change. Next:")
        for line in lines:
            print(f"  {line}")
    return {"task": task, "files": [str(source), str(test)], "commands": lines}


def _write_files(starter: _Starter, name: str, folder: Path) -> tuple[Path, Path, str]:
    """Writes the module and its test after checking names and paths. Blocks.

    Args:
        starter: The template files.
        name: The module name, such as ``my_game``; the class is then ``MyGame``.
        folder: The output folder, created if missing.

    Returns:
        The module file, the test file, and the task, such as ``my_game:MyGame``.

    Raises:
        UsageError: The name is not valid for a new module, or a file exists.
    """
    class_name = _class_name(starter, name)
    paths = folder / f"{name}.py", folder / f"test_{name}.py"
    for path in paths:
        check(
            not path.exists(),
            "file",
            path,
            "must not exist yet; choose another name or another --out",
        )
    _check_free(name, f"test_{name}")
    folder.mkdir(parents=True, exist_ok=True)
    for path, source in zip(paths, (starter.source, starter.test), strict=True):
        text = _text(source).replace(_MODULE, name).replace(_CLASS, class_name)
        with path.open("x", encoding="ascii") as file:
            file.write(text)
    return *paths, f"{name}:{class_name}"


def _class_name(starter: _Starter, name: str) -> str:
    """Returns the class name for a module name: ``MyGame`` for ``my_game``.

    Raises:
        UsageError: The name is not valid for a module or a class.
    """
    check(
        re.fullmatch(r"[a-z][a-z0-9_]*", name) is not None
        and len(name) <= _MAX_LENGTH
        and not name.startswith("test"),
        "name",
        name,
        f"must be at most {_MAX_LENGTH} lowercase letters, digits and _, start with a "
        f"letter, and not with test; try my_{starter.kind}",
    )
    class_name = "".join(word.capitalize() for word in name.split("_"))
    words = re.findall(r"\w+", _text(starter.source) + _text(starter.test))
    check(
        not keyword.iskeyword(name)
        and not keyword.iskeyword(class_name)
        and class_name not in words,
        "name",
        name,
        f"must not give reserved names, module {name} and class {class_name}; try "
        f"my_{name}",
    )
    return class_name


def _check_free(*names: str) -> None:
    """Raises UsageError if an importable module has one of ``names``."""
    for name in names:
        is_known = name in sys.stdlib_module_names or name in sys.builtin_module_names
        if not is_known and name not in sys.modules:
            try:
                is_known = importlib.util.find_spec(name) is not None
            except (ImportError, ValueError):
                is_known = True
        if is_known or name in sys.modules:
            raise UsageError(
                f"name ({names[0]}) must not be the name of an existing Python module "
                f"({name}); try my_{names[0]}"
            )


def _text(name: str) -> str:
    return (resources.files(__package__) / "data" / name).read_text(encoding="ascii")
