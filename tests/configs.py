"""The config that a call of ``tengen train`` gives a new run, without the run."""

from __future__ import annotations

from typing import Any

from tengen.recipes.call import Call
from tengen.roles import RunConfig


def new_config(task: str, **arguments: Any) -> RunConfig:
    """Returns the config that a call would give a new run; reads and writes no file.

    The arguments are those of ``train_task``, which makes the same config. Files that
    the config names are not looked for.

    Raises:
        UsageError: One of them is refused.
    """
    config = Call(task=task, **arguments).new_config()
    config.check_task()
    return config
