"""An actor whose network and experience are in its own process."""

from __future__ import annotations

from collections.abc import Sequence

from tengen.actors import EnvironmentPort
from tengen.agents import EnvironmentAgent
from tengen.envs import env_spec
from tengen.errors import RunError
from tengen.inference import bind_port, drive, open_backend
from tengen.models import load_model
from tengen.roles.actor.links import Driven, Group
from tengen.roles.config import RunConfig
from tengen.roles.experience import open_experience
from tengen.roles.role import RoleContext
from tengen.run import RunDirectory

__all__ = ["OwnLink"]


class OwnLink:
    """The network and the experience of this process; see ``ActorLink``."""

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
        self._asked = agent.signature(config.task)
        self._steps = agent.steps_of(open_experience(config, run, context))
        self.layout = self._steps.layout
        num_envs = agent.actor.num_envs
        first = agent.first_priorities(env_spec(config.task).actions)
        writer = self._steps.writer("actor-0", num_envs, first)
        # More would wait for each other: the network is this thread's too.
        self.groups: Sequence[Group] = [Group(num_envs, writer.append)]

    def drive(self, ports: Sequence[EnvironmentPort]) -> Driven | None:
        """See ``ActorLink.drive``."""
        (port,) = ports
        model = self._run.models.latest()
        if model is None:
            return None
        directory = load_model(
            self._run.models.entry(model),
            self._config.task,
            self._asked,
            error=RunError,
        )
        backend = open_backend(directory.path, self._config.inference, 1)
        port.begin(directory.meta.num_steps, self._context.stop)
        stats = drive(port, bind_port(backend, port))
        self._steps.flush()
        return Driven(stats, model)

    def close(self) -> None:
        """See ``ActorLink.close``; the experience is closed by the learner."""
