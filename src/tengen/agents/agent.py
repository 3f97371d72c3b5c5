"""The interface of an algorithm, which knows no run."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from tengen.errors import UsageError
from tengen.experience import ExperienceConfig
from tengen.learners import LearnerConfig
from tengen.nets import NetConfig
from tengen.open_config import OpenConfig
from tengen.tensors import Signature

if TYPE_CHECKING:
    from tengen.learners import Update
    from tengen.nets import Net

__all__ = ["Agent"]


class Agent(OpenConfig, package="tengen.agents"):
    """A whole algorithm: its settings, and all that follows from them.

    An agent is a frozen dataclass in a file of its own, ``agents/KIND.py``, which
    imports torch only inside methods. A run has one, ``RunConfig.agent``. The roles of
    a run and its experience are those of the agent's family (``RunConfig.family``).

    Attributes:
        also_called: Other names of the algorithm, in lower case, that ``--agent``
            answers with a hint.
        fixed: The agent's settings that a run cannot change after its start, because
            its network or its experience was made for them.
    """

    fixed: ClassVar[tuple[str, ...]] = ()
    also_called: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of(cls, agent: Agent, role: str) -> Self:
        """Returns a run's agent, for a role that exists only with agents of this class.

        Raises:
            UsageError: The run has an agent of another class.
        """
        if not isinstance(agent, cls):
            raise UsageError(
                f"role ({role}) is not part of a run of {agent.kind}; use tengen "
                f"train, which runs the roles that there are"
            )
        return agent

    @classmethod
    def refusal(cls, task: str) -> str:
        """Returns why this agent cannot train a task; empty where it can.

        Raises:
            UsageError: The task is unknown, or a package that it needs is missing.
        """
        raise NotImplementedError(f"{cls.__name__} must say what it trains")

    def check(
        self, net: NetConfig, store: ExperienceConfig, learner: LearnerConfig
    ) -> None:
        """Checks the agent against the other parts of a run.

        Raises:
            UsageError: A part cannot be used with this agent.
        """

    def check_task(
        self,
        task: str,
        net: NetConfig,
        store: ExperienceConfig,
        learner: LearnerConfig,
    ) -> None:
        """Checks the settings that depend on the task. Makes the task.

        Raises:
            UsageError: A setting does not fit the task.
        """

    def signature(self, task: str) -> Signature:
        """Returns the inputs and outputs that the agent needs of a network."""
        raise NotImplementedError(f"{type(self).__name__} must ask for a network")

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> Update:
        """Returns how the agent learns.

        Args:
            task: The task.
            net: The network in training.
            store: How the experience is drawn.
        """
        raise NotImplementedError(f"{type(self).__name__} must learn")
