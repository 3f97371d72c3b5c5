"""A host of roles: makes each role of a run when its first turn is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tengen.games import check_typed
from tengen.roles.config import read_config
from tengen.roles.role import Report, Role, RoleContext, SavingRole, make_role
from tengen.run import RunDirectory

__all__ = ["RoleHost"]


class RoleHost:
    """Takes turns of roles that share a process. Turns are taken by one thread.

    Args:
        run: The run.
        context: The context of the roles; ``context.stop`` ends a turn.
        task: The run's task, if the user typed it; None refuses a game in Python.
    """

    def __init__(
        self, run: RunDirectory, context: RoleContext, task: str | None
    ) -> None:
        self._run = run
        self._context = context
        self._task = task
        self._roles: dict[str, Role] = {}

    def turn(self, name: str, details: Mapping[str, Any]) -> Report | None:
        """Takes a turn of a role. Blocks until its end.

        Args:
            name: The role.
            details: ``sealed``, and perhaps the values of ``Spending.outlook``,
                ``generation_s``, ``follow_models``, ``frames_left``, ``saves`` and
                ``opponent``; see ``RoleContext``. ``is_changed`` makes the role read
                ``run.json`` again.

        Raises:
            UsageError: The role refuses its config or its files, or the task was not
                typed.
            RunError: The role failed.
        """
        context = self._context
        context.remaining = details.get("remaining")
        context.asked = details.get("asked")
        context.core_minutes = details.get("core_minutes")
        context.core_minutes_in_all = details.get("core_minutes_in_all")
        context.generation_s = details.get("generation_s")
        context.sealed = details["sealed"]
        context.follow_models = details.get("follow_models", False)
        context.frames_left = details.get("frames_left")
        context.saves = details.get("saves", True)
        context.opponent = details.get("opponent")
        if details.get("is_changed", False) and name in self._roles:
            self._roles.pop(name).close()
        if name not in self._roles:
            # Read here and not earlier, because the export role completes the config
            # once.
            config = read_config(self._run)
            check_typed(config.task, self._task, self._run.path)
            if config.agent.schedule(config).counts_frames:
                with context.starting("making the environment"):
                    config.agent.signature(config.task)  # asks for its spaces
            self._roles[name] = make_role(name, config, self._run, self._context)
        return self._roles[name].turn()

    @property
    def is_saved(self) -> bool:
        """Whether all that the roles learned is on the disk."""
        return all(role.is_saved for role in self._savers())

    def save(self) -> None:
        """Saves what the roles learned; a call before ``close``, which may hang.

        Raises:
            RunError: The disk refuses.
        """
        for role in self._savers():
            role.save()

    def close(self) -> None:
        """Closes the roles, and so their environments. A second call does nothing.

        Raises:
            Exception: The first error of a role; all are closed.
        """
        errors = []
        while self._roles:
            try:
                self._roles.popitem()[1].close()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _savers(self) -> list[SavingRole]:
        roles = self._roles.values()
        return [role for role in roles if isinstance(role, SavingRole)]
