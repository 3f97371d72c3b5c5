"""What ``module:Name`` names: a game or an environment of somebody's own.

Importing it runs whatever the module holds, so that nobody comes here with a name that
was read from a file; see `tengen.games.typed`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from tengen.errors import UsageError, did_you_mean
from tengen.games.raised import RAISED

__all__ = ["load_program", "make_program", "makes_environment"]


def load_program(task: str) -> Callable[[], Any]:
    """Imports ``module:Name`` and returns what is there, uncalled.

    The module is looked for as Python does, and in the current directory.

    Raises:
        UsageError: There is no such module, it raised, or it has no such name that can
            be called.
    """
    module_name, _, name = task.partition(":")
    if not module_name or not name:
        raise UsageError(
            f"task ({task}) must be module:Class; name a Python module and a class"
        )
    if os.getcwd() not in sys.path and "" not in sys.path:
        # A console script does not look in the current directory, `python -m` does.
        sys.path.append(os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except RAISED as error:
        raise UsageError(
            f"task ({task}) must name a module that imports, but importing "
            f"{module_name} raised {type(error).__name__}: {error}; "
            f"correct it, or start where it lies"
        ) from error
    found: Any = getattr(module, name, None)
    if not callable(found):
        classes = [key for key, value in vars(module).items() if callable(value)]
        advice = did_you_mean(name, classes, "define it there")
        raise UsageError(f"task ({task}) must name a class of {module_name}; {advice}")
    made: Callable[[], Any] = found
    return made


def make_program(task: str) -> Any:
    """Returns what ``module:Name()`` returns.

    Raises:
        UsageError: As `load_program`, or the call raised.
    """
    found = load_program(task)
    try:
        return found()
    except RAISED as error:
        raise UsageError(
            f"task ({task}) must be made without arguments, but "
            f"{task.partition(':')[2]}() raised "
            f"{type(error).__name__}: {error}; correct it"
        ) from error


def makes_environment(task: str) -> bool:
    """Returns whether ``module:Name`` is an environment, and no game.

    A class is one if it is a ``gymnasium.Env`` or has its methods ``reset`` and
    ``step``, which no game has. A function is called, and what it returns is looked at.

    Raises:
        UsageError: As `make_program`.
    """
    found = load_program(task)
    if isinstance(found, type):
        return _is_environment(found)
    made = make_program(task)
    is_environment = _is_environment(made)
    if is_environment and hasattr(made, "close"):
        made.close()
    return is_environment


def _is_environment(found: Any) -> bool:
    return all(callable(getattr(found, method, None)) for method in ("reset", "step"))
