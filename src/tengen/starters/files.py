"""Writes a module and its test from the files beside this one, under another name."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from tengen.config import check
from tengen.errors import UsageError

__all__ = ["ENVIRONMENT", "GAME", "Starter", "write_starter"]

_MAX_LENGTH = 60
# What stands for the module and the class in the files.
_MODULE, _CLASS = "starter_module", "StarterClass"


@dataclass(frozen=True)
class Starter:
    """Two files to begin with."""

    kind: str
    """As the commands have it: ``game`` or ``env``."""
    source: str
    """The file of the module."""
    test: str
    """The file of its test."""


GAME = Starter("game", "game.txt", "game_test.txt")
ENVIRONMENT = Starter("env", "environment.txt", "environment_test.txt")


def write_starter(starter: Starter, name: str, folder: Path) -> tuple[Path, Path, str]:
    """Writes both files; nothing where either cannot be. Blocks on the disk.

    Args:
        starter: Which ones.
        name: The module's; its class has the same in capitals, ``MyGame``.
        folder: Where to, made where it is missing.

    Returns:
        The module's file, its test's, and the task, ``my_game:MyGame``.

    Raises:
        UsageError: The name is none of a new module, or a file is there already.
    """
    class_name = _class_name(starter, name)
    paths = folder / f"{name}.py", folder / f"test_{name}.py"
    for path in paths:
        check(
            not path.exists(),
            "file",
            path,
            "must not be there yet; choose another name, or another --out",
        )
    _check_free(name, f"test_{name}")
    folder.mkdir(parents=True, exist_ok=True)
    for path, source in zip(paths, (starter.source, starter.test), strict=True):
        text = _text(source).replace(_MODULE, name).replace(_CLASS, class_name)
        with path.open("x", encoding="ascii") as file:
            file.write(text)
    return *paths, f"{name}:{class_name}"


def _class_name(starter: Starter, name: str) -> str:
    """Returns ``MyGame`` of ``my_game``.

    Raises:
        UsageError: The module or the class would need another name.
    """
    check(
        re.fullmatch(r"[a-z][a-z0-9_]*", name) is not None
        and len(name) <= _MAX_LENGTH
        and not name.startswith("test"),
        "name",
        name,
        f"must be small letters, digits and _, a letter first, at most {_MAX_LENGTH}, "
        f"and not begin with test; try my_{starter.kind}",
    )
    class_name = "".join(word.capitalize() for word in name.split("_"))
    words = re.findall(r"\w+", _text(starter.source) + _text(starter.test))
    check(
        not keyword.iskeyword(name)
        and not keyword.iskeyword(class_name)
        and class_name not in words,
        "name",
        name,
        f"must make a module and a class of new names, {name} and {class_name}; "
        f"try my_{name}",
    )
    return class_name


def _check_free(*names: str) -> None:
    """Refuses names by which Python would find another module.

    Raises:
        UsageError: There is one.
    """
    for name in names:
        is_known = name in sys.stdlib_module_names or name in sys.builtin_module_names
        if not is_known and name not in sys.modules:
            try:
                is_known = importlib.util.find_spec(name) is not None
            except (ImportError, ValueError):
                is_known = True
        if is_known or name in sys.modules:
            raise UsageError(
                f"name ({names[0]}) must not be that of a module which Python finds "
                f"already ({name}); try my_{names[0]}"
            )


def _text(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="ascii")
