"""A host of roles: makes each role of a run when its first turn is asked for.

A runner says when a role takes a turn (``launch.child``); for a role by itself it is
always that role's turn (``roles.alone``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tengen.games import check_typed
from tengen.roles.config import RunConfig, read_config
from tengen.roles.devices import with_devices
from tengen.roles.role import Report, Role, RoleContext, SavingRole, make_role
from tengen.run import RunDirectory, remove_leftovers

__all__ = ["RoleHost"]

# Roles that run code of others when they are closed.
_WITH_ENVIRONMENTS = ("actor",)
_OWN_FOLDERS = {
    "shuffle": ("shuffled",),
    "learn": ("checkpoints",),
    "export": ("candidates", "templates"),
}
"""The folders that a role by itself publishes in, under its lock."""
_TOLD = {
    **dict.fromkeys(("remaining", "asked", "core_minutes", "core_minutes_in_all")),
    **dict.fromkeys(("generation_s", "sealed", "frames_left", "opponent")),
    "follow_models": False,
    "saves": True,
}
"""The fields of ``RoleContext`` that each turn sets, with their defaults."""


class RoleHost:
    """Takes turns of roles that share a process. Turns are taken by one thread.

    Args:
        run: The run.
        context: The context of the roles; ``context.stop`` ends a turn.
        task: The run's task, if the user typed it; None refuses a game in Python.
        devices: Devices that the user typed; None for the run's.
        is_alone: Whether no runner gives the turns. Then a role is made anew whenever
            ``run.json`` changes, and removes what killed processes of any host left.
    """

    def __init__(
        self,
        run: RunDirectory,
        context: RoleContext,
        task: str | None,
        *,
        devices: str | None = None,
        is_alone: bool = False,
    ) -> None:
        self._run = run
        self._context = context
        self._task = task
        self._devices = devices
        self._is_alone = is_alone
        self._roles: dict[str, Role] = {}
        self._configs: dict[str, RunConfig] = {}

    def turn(self, name: str, details: Mapping[str, Any]) -> Report | None:
        """Takes a turn of a role. Blocks until its end.

        Args:
            name: The role.
            details: Values for fields of ``RoleContext``, such as those of
                ``Spending.outlook``; ``is_changed`` makes the role read ``run.json``
                again.

        Raises:
            UsageError: The role refuses its config or its files, or the task was not
                typed.
            RunError: The role failed.
        """
        context = self._context
        for field, default in _TOLD.items():
            setattr(context, field, details.get(field, default))
        if details.get("is_changed", False):
            self.drop(name)
        if name not in self._roles or self._is_alone:
            self._make(name)
        return self._roles[name].turn()

    def waits_for(self, name: str) -> str:
        """Returns what the last turn of a role lacked; "" if it worked."""
        return self._roles[name].waits_for if name in self._roles else ""

    def drop(self, name: str) -> None:
        """Closes a role, which is made anew in its next turn. Saves nothing."""
        if name in self._roles:
            self._roles.pop(name).close()

    def _make(self, name: str) -> None:
        """Makes a role, unless it is there and its config is as it was."""
        # Read here and not earlier, because the export role completes the config once.
        config = with_devices(read_config(self._run), self._devices)
        if name in self._roles and config == self._configs[name]:
            return
        self.drop(name)
        check_typed(config.task, self._task, self._run.path)
        if config.schedule.counts_frames:
            with self._context.starting("making the environment"):
                config.agent.signature(config.task)  # asks for its spaces
        self._roles[name] = make_role(name, config, self._run, self._context)
        self._configs[name] = config
        if self._is_alone:
            # The role holds its lock: no other process publishes there, on any host.
            for folder in _OWN_FOLDERS.get(name, ()):
                remove_leftovers(self._run.path / folder, of_other_hosts=True)

    @property
    def is_saved(self) -> bool:
        """Whether all that the roles learned and acted is on the disk. Any thread."""
        experience = self._context.shared.experience
        if experience is not None and not experience.is_durable:
            return False
        return all(role.is_saved for role in self._savers())

    def save(self) -> None:
        """Saves what the roles learned, and closes all but those with environments.

        A call before ``close``, in which an environment may hang or end the process.

        Raises:
            Exception: The first error, as where the disk is full; all are closed.
        """
        savers = self._savers()
        own = [name for name in self._roles if name not in _WITH_ENVIRONMENTS]
        calls: list[Callable[[], object]] = [saver.save for saver in savers]
        calls += [self._roles.pop(name).close for name in reversed(own)]
        if (experience := self._context.shared.experience) is not None:
            # The learner closes it, but an actor may have come first.
            calls.append(lambda: self._context.write(experience.close))
        _call_all(calls)

    def close(self) -> None:
        """Closes the roles, environments last. A second call does nothing.

        Raises:
            Exception: The first error; all are closed.
        """
        last = [
            role for name, role in self._roles.items() if name in _WITH_ENVIRONMENTS
        ]
        _call_all([self.save, *(role.close for role in last)])
        self._roles.clear()

    def _savers(self) -> list[SavingRole]:
        # A copy, as the thread that takes turns may make a role meanwhile.
        roles = [*self._roles.values()]
        return [role for role in roles if isinstance(role, SavingRole)]


def _call_all(calls: Sequence[Callable[[], object]]) -> None:
    """Makes calls, whatever one of them raises; then raises the first error."""
    errors = []
    for call in calls:
        try:
            call()
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]
