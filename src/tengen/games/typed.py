"""Which programs may be imported: those that the user typed, and no other.

``module:Class``, a game or an environment in Python, names a program: opening it runs
whatever that module holds. Files of runs and models name their tasks too, and may come
from anyone. All of tengen opens games and environments by `open_game` and
``tengen.envs.make``, which import only what was allowed. The code that got the name
from the user (a command line, a call from Python, the process that started this one)
allows it by `allow` or, if a file names the task too, by `check_typed`.
"""

from __future__ import annotations

import argparse
import shlex

from tengen.errors import UsageError
from tengen.games.openspiel import OPENSPIEL_PREFIX

__all__ = [
    "add_task_argument",
    "allow",
    "check_allowed",
    "check_typed",
    "is_program",
    "task_words",
]

_allowed: set[str] = set()
"""Tasks in Python that the user typed, for as long as this process lives."""


def is_program(task: str) -> bool:
    """Whether a task is ``module:Class``, which is imported where it is opened."""
    return ":" in task and not task.startswith(OPENSPIEL_PREFIX)


def allow(task: str) -> None:
    """Lets this process import a task. Only for what the user typed, never for data.

    Args:
        task: Any task; without effect unless it is ``module:Class``.
    """
    if is_program(task):
        _allowed.add(task)


def check_allowed(task: str) -> None:
    """Refuses a task in Python that the user did not type; imports nothing.

    Raises:
        UsageError: The task is in Python and was not typed.
    """
    if is_program(task) and task not in _allowed:
        raise UsageError(_refusal(task))


def check_typed(task: str, typed: str | None, source: object) -> None:
    """Compares the task that a file names with the typed one, and allows it if equal.

    What an earlier call of this process allowed does not count.

    Args:
        task: As the file of a run or a model names it.
        typed: What the user typed in this call, or None.
        source: The run or the model, for the message.

    Raises:
        UsageError: They differ, or the task is in Python and nothing was typed.
    """
    if typed is None:
        if is_program(task):
            raise UsageError(_refusal(task, f" of {source}"))
        return
    if typed != task:
        raise UsageError(f"task ({typed}) must be {task}, that of {source}; correct it")
    allow(typed)


def task_words(task: str) -> str:
    """Returns the option that a command on a run of the task needs: `` --task m:C``.

    Empty where the task is not in Python.
    """
    return f" --task {shlex.quote(task)}" if is_program(task) else ""


def add_task_argument(parser: argparse.ArgumentParser) -> None:
    """Declares ``--task``, for a command that opens a run or a model."""
    parser.add_argument(
        "--task",
        metavar="module:Class",
        help="the run's task, needed if it is a game or an environment in Python: a "
        "module is imported only if it is named here, never because a file names it",
    )


def _refusal(task: str, of_source: str = "") -> str:
    return (
        f"task ({task}){of_source} is a program, which runs only where it is typed; "
        f"add{task_words(task)} to run it (in Python task=)"
    )
