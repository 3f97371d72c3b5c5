"""``Agent``, the interface of a training algorithm, which does not depend on a run."""

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


class Agent(OpenConfig, package="tengen.agents"):
    """A complete algorithm: its settings, and the methods that depend on them.

    An agent is a frozen dataclass in a file of its own, ``agents/KIND.py``, which
    imports torch only inside methods. A run has one agent, ``RunConfig.agent``. The
    agent's family (``RunConfig.family``) defines the run's roles and experience.

    Attributes:
        also_called: Other names of the algorithm, in lower case. If the user gives one
            of them to ``--agent``, the error message suggests the agent's name.
        fixed: Names of the settings that a run cannot change after its start, because
            its network or its experience depends on them.
    """

    fixed: ClassVar[tuple[str, ...]] = ()
    also_called: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of(cls, agent: Agent, role: str) -> Self:
        """Returns ``agent``, after checking that it is an instance of this class.

        Raises:
            UsageError: ``agent`` is of a class whose runs do not have the role.
        """
        if not isinstance(agent, cls):
            raise UsageError(
                f"role ({role}) does not exist in a run of agent {agent.kind}; use "
                "tengen train, which starts the run's roles"
            )
        return agent

    @classmethod
    def refusal(cls, task: str) -> str:
        """Returns the reason why this class cannot train on ``task``; empty if it can.

        Raises:
            UsageError: The task is unknown, or a package that the task needs is
                missing.
        """
        raise NotImplementedError(f"{cls.__name__} must define refusal()")

    def check(
        self, net: NetConfig, store: ExperienceConfig, learner: LearnerConfig
    ) -> None:
        """Checks that the agent supports the other configs of a run.

        Raises:
            UsageError: The agent does not support a config.
        """

    def check_task(
        self,
        task: str,
        net: NetConfig,
        store: ExperienceConfig,
        learner: LearnerConfig,
    ) -> None:
        """Checks the settings against the task, whose game or environment it creates.

        Raises:
            UsageError: A setting does not fit the task.
        """

    def signature(self, task: str) -> Signature:
        """Returns the inputs and outputs that the agent's network must have."""
        raise NotImplementedError(f"{type(self).__name__} must define signature()")

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> Update:
        """Returns the agent's ``Update``, which computes losses for the learner.

        Args:
            task: The name of the task.
            net: The network to train.
            store: The config of the run's experience.
        """
        raise NotImplementedError(f"{type(self).__name__} must define update()")
