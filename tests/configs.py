"""Creates the config of a new run as ``tengen train`` does, but not the run."""

from __future__ import annotations

from typing import Any

from tengen.recipes.call import Call
from tengen.roles import RunConfig


def new_config(task: str, **arguments: Any) -> RunConfig:
    """Returns the config of a new run without reading or writing any file.

    Takes the arguments of ``train_task``, which creates the same config. Does not check
    that the files named in the config exist.

    Raises:
        UsageError: An argument is invalid.
    """
    config = Call(task=task, **arguments).new_config()
    config.check_task()
    return config
