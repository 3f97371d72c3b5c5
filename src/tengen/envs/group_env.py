"""Two groups of copies in turns: one steps while the caller is busy with the other.

One thread steps both groups, so that it always has work and keeps its caches. With a
thread for each group, the threads would wake and sleep in turns, which took a tenth
more of an actor's time.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from tengen.envs.env import Arrays, EnvSpec, Step

__all__ = ["GroupEnv"]


@runtime_checkable
class GroupEnv(Protocol):
    """One of two groups of copies, which steps while its caller does something else.

    The first call is ``receive_first`` of the first group. Then the calls of both
    groups alternate: after receiving from a group, the caller sends it actions before
    it receives from the other group. The convention of time is that of ``Env``. Not
    thread-safe.
    """

    @property
    def spec(self) -> EnvSpec:
        """The environment's spec."""

    @property
    def num_envs(self) -> int:
        """Copies N of the group."""

    def receive_first(self) -> Arrays:
        """Returns the first observations, ``[N, ...]`` each. Blocks."""

    def send(self, actions: NDArray[Any]) -> None:
        """Sends actions to every copy of the group; it steps after the other group.

        Args:
            actions: ``[N, ...]``, as for ``Env.step``.

        Raises:
            EnvError: The environment raised.
            RunError: An action is out of range, or the calls do not alternate.
        """

    def receive(self) -> Step:
        """Returns the step that was sent. Blocks.

        Raises:
            EnvError: The environment raised.
            RunError: The calls do not alternate.
        """

    def close(self) -> None:
        """Releases both groups' resources. Safe to call twice, and for both groups."""
