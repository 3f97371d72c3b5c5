"""Imports user-defined games and environments by name, ``module:Name``.

Importing a module runs its code, so callers must pass only names that the user typed,
never a name from a file; see `tengen.games.typed`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from tengen.errors import UsageError, did_you_mean
from tengen.games.raised import RAISED


def load_program(task: str) -> Callable[[], Any]:
    """Imports ``module:Name`` and returns the class or function, without calling it.

    The module is searched for on Python's path and in the current directory.

    Raises:
        UsageError: The module does not exist, its import raised an exception, or it has
            no callable of that name.
    """
    module_name, _, name = task.partition(":")
    if not module_name or not name:
        raise UsageError(
            f"task ({task}) must be module:Class; name a Python module and a class"
        )
    if os.getcwd() not in sys.path and "" not in sys.path:
        # A console script's path lacks the current directory, unlike that of `python
        # -m`.
        sys.path.append(os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except UsageError:
        raise  # the module calls tengen itself
    except RAISED as error:
        raise UsageError(
            f"task ({task}) must name an importable module, but importing "
            f"{module_name} raised {type(error).__name__}: {error}; correct it, or run "
            "from its folder"
        ) from error
    found: Any = getattr(module, name, None)
    if not callable(found):
        classes = [key for key, value in vars(module).items() if callable(value)]
        advice = did_you_mean(name, classes, "define it there")
        raise UsageError(f"task ({task}) must name a class of {module_name}; {advice}")
    made: Callable[[], Any] = found
    return made


def make_program(task: str) -> Any:
    """Imports ``module:Name``, calls it without arguments, and returns the result.

    Raises:
        UsageError: As for `load_program`, or the call raised an exception.
    """
    found = load_program(task)
    try:
        return found()
    except RAISED as error:
        raise UsageError(
            f"task ({task}) must work without arguments, but "
            f"{task.partition(':')[2]}() raised {type(error).__name__}: {error}; "
            "correct it"
        ) from error


def makes_environment(task: str) -> bool:
    """Returns whether ``module:Name`` makes an environment, and not a game.

    An environment has methods ``reset`` and ``step``, which no game has. A class is
    examined; a function is called and its result is examined.

    Raises:
        UsageError: As for `make_program`.
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
