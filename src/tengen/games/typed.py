"""Access control for imports: only tasks that the user typed may be imported.

A task ``module:Class`` is a program in Python, and opening it runs the module's code.
The files of runs and models also contain task names, and may come from untrusted
sources. Therefore tengen opens tasks only with `open_game` and ``tengen.envs.make``,
which import only allowed programs. Code that receives a task's name from the user (on a
command line, in a call from Python, or from the parent process) allows the name with
`allow`, or with `check_typed` if a file names the task as well.
"""

from __future__ import annotations

import argparse
import shlex

from tengen.errors import UsageError
from tengen.games.openspiel import OPENSPIEL_PREFIX

_allowed: set[str] = set()
"""The tasks ``module:Class`` that this process may import."""


def is_program(task: str) -> bool:
    """Returns whether ``task`` is ``module:Class``: opening it imports code."""
    return ":" in task and not task.startswith(OPENSPIEL_PREFIX)


def allow(task: str) -> None:
    """Allows this process to import ``task``. Pass only names that the user typed.

    Args:
        task: The name of a task. Names other than ``module:Class`` have no effect.
    """
    if is_program(task):
        _allowed.add(task)


def check_allowed(task: str) -> None:
    """Raises UsageError if ``task`` is a program that the user did not type."""
    if is_program(task) and task not in _allowed:
        raise UsageError(_refusal(task))


def check_typed(task: str, typed: str | None, source: object) -> None:
    """Checks that a file's task is the one that the user typed, and allows it.

    The user must have typed it for this call: earlier permissions do not count.

    Args:
        task: The task in the file of a run or a model.
        typed: The task that the user typed for this call, or None.
        source: The run or the model, for the error message.

    Raises:
        UsageError: The tasks differ, or ``task`` is ``module:Class`` and ``typed`` is
            None.
    """
    if typed is None:
        if is_program(task):
            raise UsageError(_refusal(task, f" of {source}"))
        return
    if typed != task:
        raise UsageError(f"task ({typed}) must be {task}, as in {source}; correct it")
    allow(typed)


def task_words(task: str) -> str:
    """Returns the option that commands need for ``task``, such as `` --task m:C``.

    Empty if the task is not ``module:Class``.
    """
    return f" --task {shlex.quote(task)}" if is_program(task) else ""


def add_task_argument(parser: argparse.ArgumentParser) -> None:
    """Adds the option ``--task`` to a command that opens a run or a model."""
    parser.add_argument(
        "--task",
        metavar="module:Class",
        help="the run's task, required if it is a game or an environment in Python: a "
        "module is imported only if you name it here, not because a file names it",
    )


def _refusal(task: str, of_source: str = "") -> str:
    return (
        f"task ({task}){of_source} is a program, which runs only if you name it; "
        f"add{task_words(task)} to run it (in Python task=)"
    )
