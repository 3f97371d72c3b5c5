"""Two groups of copies in turns: one steps while the caller is busy with the other.

Both step in one thread, which then always has work and finds its caches as it left
them. Groups that have a thread each step in turns too, by as many threads that wake and
sleep: that took a tenth more of an actor's time.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from tengen.envs.env import Arrays, EnvSpec, Step

__all__ = ["GroupEnv"]


@runtime_checkable
class GroupEnv(Protocol):
    """One group of two, which steps beside its caller.

    ``receive_first`` of the first group is the first call, and then the calls of both
    alternate: what a group was received from, it is sent actions, before the other
    group is received from. The convention of time is that of ``Env``. For one thread.
    """

    @property
    def spec(self) -> EnvSpec:
        """What is known of it."""

    @property
    def num_envs(self) -> int:
        """Copies N of the group."""

    def receive_first(self) -> Arrays:
        """Returns the first observations, ``[N, ...]`` each. Blocks."""

    def send(self, actions: NDArray[Any]) -> None:
        """Has every copy of the group stepped, behind those of the other group.

        Args:
            actions: ``[N, ...]``, as for ``Env.step``.

        Raises:
            EnvError: It raised.
            RunError: An action is out of range, or the calls do not alternate.
        """

    def receive(self) -> Step:
        """Returns the step that was sent. Blocks.

        Raises:
            EnvError: It raised.
            RunError: The calls do not alternate.
        """

    def close(self) -> None:
        """Releases what both groups hold. Safe to call twice, and of both groups."""
