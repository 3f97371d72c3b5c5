"""The connections of an actor to a network and experience in its own process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tengen.actors import EnvironmentPort
from tengen.agents import EnvironmentAgent
from tengen.envs import env_spec
from tengen.inference import bind_port, drive, open_backend
from tengen.nets.modules.net import Net
from tengen.roles.actor.links import Driven, Group, open_writer
from tengen.roles.config import RunConfig
from tengen.roles.config.environments import steps_of
from tengen.roles.experience import open_experience
from tengen.roles.role import RoleContext
from tengen.run import RunDirectory


class OwnLink:
    """An ``ActorLink`` to the network and the experience of the actor's own process.

    Turns of the learner and the actor alternate. The learner makes the experience
    durable immediately before it saves its own state, so after a kill both are from the
    same turn, unless the process was killed between the two writes.
    """

    def __init__(
        self,
        agent: EnvironmentAgent,
        config: RunConfig,
        run: RunDirectory,
        context: RoleContext,
    ) -> None:
        self._config = config
        self._run = run
        self._context = context
        self._steps = steps_of(open_experience(config, run, context))
        self.layout = self._steps.layout
        spec, num_copies = env_spec(config.task), agent.actor.num_envs
        write = open_writer(self._steps, "actor-0", agent, spec, num_copies)
        # This thread steps the environments and runs the network, so several groups
        # would only wait for each other.
        self.groups: Sequence[Group] = [Group(num_copies, write)]

    def drive(self, ports: Sequence[EnvironmentPort]) -> Driven:
        """See ``ActorLink.drive``."""
        (port,) = ports
        model = self._run.models.latest()
        assert model is not None  # the role checks this first
        source, num_steps = self._newest(model)
        backend = open_backend(source, self._config.inference, 1)
        port.begin(num_steps, self._context.stop)
        return Driven(drive(port, bind_port(backend, port)), model)

    def _newest(self, model: int) -> tuple[Path | Net, int]:
        """Returns the newest model or network, and the number of its learner steps."""
        learned = self._context.shared.learned
        if learned is not None:
            return learned
        directory = self._config.load_model(self._run.models.entry(model))
        return directory.path, directory.meta.num_steps

    def close(self) -> None:
        """See ``ActorLink.close``. The learner closes the experience."""
