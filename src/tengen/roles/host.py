"""Runs the roles of one process, and creates each role at its first turn.

The runner decides when a role takes a turn (``launch.child``); a standalone role takes
turns continuously (``roles.alone``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tengen.games import check_typed
from tengen.inference.central import Interrupted
from tengen.roles.config import RunConfig, read_config
from tengen.roles.devices import with_devices
from tengen.roles.role import Report, Role, RoleContext, make_role
from tengen.run import RunDirectory, remove_leftovers

# Roles whose ``close`` runs third-party code, which may hang or end the process.
_WITH_ENVIRONMENTS = ("actor",)
_OWN_FOLDERS = {
    "shuffle": ("shuffled",),
    "learn": ("checkpoints",),
    "export": ("candidates", "templates"),
}
"""For each role, the run's folders in which only the holder of its lock publishes."""
_TOLD = {
    **dict.fromkeys(("remaining", "asked", "core_minutes", "core_minutes_in_all")),
    **dict.fromkeys(("generation_s", "sealed", "frames_left", "opponent")),
    "follow_models": False,
    "counts_cpu": False,
    "saves": True,
}
"""The fields of ``RoleContext`` that are set for each turn, with their defaults."""


class RoleHost:
    """Runs turns of the roles that share a process, all in one thread.

    Args:
        run: The run.
        context: The context of the roles; ``context.stop`` ends a turn.
        task: The run's task, if the user named it in this call. If None, a game in
            Python is rejected.
        devices: The value of ``--devices``; None uses the devices of the config.
        is_alone: Whether the role is standalone, without a runner. The role is then
            created again when ``run.json`` changes, and leftovers of killed processes
            of any host are removed.
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
        """Runs a turn of a role. Blocks until the turn has ended.

        Args:
            name: The role.
            details: Values for fields of ``RoleContext``, such as those of
                ``Spending.outlook``; ``is_changed`` makes the role reread ``run.json``.

        Raises:
            UsageError: The role rejects its config or its files, or the task is a
                program that the user did not name in this call.
            RunError: The role failed.
        """
        context = self._context
        for field, default in _TOLD.items():
            setattr(context, field, details.get(field, default))
        if details.get("is_changed", False):
            self.drop(name)
        if name not in self._roles or self._is_alone:
            try:
                self._make(name)
            except Interrupted:
                return {"stopped": True}
        return self._roles[name].turn()

    def waits_for(self, name: str) -> str:
        """Returns ``Role.waits_for`` of role ``name``; "" before its first turn."""
        return self._roles[name].waits_for if name in self._roles else ""

    def drop(self, name: str) -> None:
        """Closes a role; its next turn creates it again."""
        if name in self._roles:
            self._roles.pop(name).close()

    def _make(self, name: str) -> None:
        """Creates a role, unless it exists and its config is unchanged."""
        # Read the config only now, because the role export adds measured settings.
        config = with_devices(read_config(self._run), self._devices)
        if name in self._roles and config == self._configs[name]:
            return
        self.drop(name)
        check_typed(config.task, self._task, self._run.path)
        if config.schedule.counts_frames:
            with self._context.starting("making the environment"):
                config.agent.signature(config.task)  # creates an environment
        self._roles[name] = make_role(name, config, self._run, self._context)
        self._configs[name] = config
        if self._is_alone:
            # The role holds its lock, so no other process publishes in these folders.
            for folder in _OWN_FOLDERS.get(name, ()):
                remove_leftovers(self._run.path / folder, of_other_hosts=True)

    @property
    def is_saved(self) -> bool:
        """Whether all learner state and experience is on the disk. Thread-safe."""
        experience = self._context.shared.experience
        if experience is not None and not experience.is_durable:
            return False
        # Copied, because the thread that runs turns may add a role meanwhile.
        return all(role.is_saved for role in [*self._roles.values()])

    def save(self) -> None:
        """Saves all learner state, and closes all roles except those with environments.

        Call it before ``close``, because closing an environment may hang or end the
        process.

        Raises:
            Exception: The first error, such as a full disk, after trying all roles.
        """
        own = [name for name in self._roles if name not in _WITH_ENVIRONMENTS]
        calls: list[Callable[[], object]] = [one.save for one in self._roles.values()]
        calls += [self._roles.pop(name).close for name in reversed(own)]
        if (experience := self._context.shared.experience) is not None:
            # Close experience that an actor opened, if no learner was created.
            calls.append(lambda: self._context.write(experience.close))
        _call_all(calls)

    def close(self) -> None:
        """Saves and closes all roles, those with environments last. Idempotent.

        Raises:
            Exception: The first error; all roles are closed anyway.
        """
        last = [
            role for name, role in self._roles.items() if name in _WITH_ENVIRONMENTS
        ]
        _call_all([self.save, *(role.close for role in last)])
        self._roles.clear()


def _call_all(calls: Sequence[Callable[[], object]]) -> None:
    """Calls all functions even if some of them raise; then raises the first error."""
    errors = []
    for call in calls:
        try:
            call()
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]
