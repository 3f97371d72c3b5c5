"""Two groups of one game's copies, which ALE steps in turns on one thread.

ALE's vector form steps half of its copies at a time: it returns the copies that were
sent actions first, and takes actions for the copies that it returned last. With one
thread, copies come back in the order of sending, so that the halves are always the same
copies; this is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs.copies import RAISED, ActionRange, raised
from tengen.envs.env import Arrays, GroupEnv, Step
from tengen.envs.suites.atari import Episodes, grey_env, protocol_of, seeds_of, spec_of
from tengen.errors import EnvError, RunError

__all__ = ["make_groups"]


def make_groups(name: str, num_envs: int, seeds: Sequence[int]) -> list[GroupEnv]:
    """Returns two groups of a game's copies, the same as ``make`` would make apart.

    Args:
        name: ``atari/Pong``, ``atari/Pong/classic``.
        num_envs: Copies of each group, at least 1.
        seeds: Seeds of the two groups, at least 0.

    Raises:
        UsageError: As ``make``.
    """
    both = _Both(name, num_envs, seeds)
    return [_AtariGroup(both, place) for place in range(2)]


class _Both:
    """The copies of both groups, and whose turn it is."""

    def __init__(self, name: str, num_envs: int, seeds: Sequence[int]) -> None:
        self.name = name
        self.num_envs = num_envs
        self._seeds = np.concatenate([seeds_of(seed, num_envs) for seed in seeds])
        self._envs = grey_env(name, 2 * num_envs, batch_size=num_envs)
        self._ids = [np.arange(num_envs) + place * num_envs for place in range(2)]
        self.spec = spec_of(name, self._envs)
        self.range = ActionRange(self.spec.actions, name)
        # The group that was received from and has not been sent actions since.
        self._turn_of: int | None = None
        self._next = 0

    def receive_first(self, place: int) -> Any:
        self._check(place, is_sending=False)
        if place == 0:
            result = self._call(lambda: self._envs.reset(seed=self._seeds))
        else:
            result = self._receive()
        return self._received(place, result)

    def receive(self, place: int) -> Any:
        self._check(place, is_sending=False)
        return self._received(place, self._receive())

    def send(self, place: int, actions: NDArray[np.int32]) -> None:
        self._check(place, is_sending=True)
        self._call(lambda: self._envs.send(actions))
        self._turn_of = None

    def close(self) -> None:
        self._envs.close()

    def _receive(self) -> Any:
        return self._call(self._envs.recv)

    def _received(self, place: int, result: Any) -> Any:
        if not np.array_equal(result[-1]["env_id"], self._ids[place]):
            raise EnvError(
                f"copies ({result[-1]['env_id'].tolist()}) of {self.name} must be "
                f"those that were sent first; set agent.actor.num_groups=1, and report "
                f"it"
            )
        self._turn_of, self._next = place, 1 - place
        return result

    def _check(self, place: int, *, is_sending: bool) -> None:
        fits = self._turn_of == place if is_sending else self._turn_of is None
        if not fits or (not is_sending and place != self._next):
            raise RunError(
                f"group ({place}) of {self.name} must be sent actions after it was "
                f"received from, and before the other is; correct the caller"
            )

    def _call(self, what: Any) -> Any:
        try:
            return what()
        except RAISED as error:
            raise raised(self.name, error, "a step of a group") from error


class _AtariGroup:
    """One of the two groups; see ``GroupEnv``."""

    def __init__(self, both: _Both, place: int) -> None:
        self._both = both
        self._place = place
        self.spec = both.spec
        self.num_envs = both.num_envs
        self._episodes = Episodes(protocol_of(both.name), both.num_envs)

    def receive_first(self) -> Arrays:
        """See ``GroupEnv.receive_first``."""
        result = self._both.receive_first(self._place)
        self._episodes.begin(result[-1])
        return {"observation": result[0]}

    def send(self, actions: NDArray[Any]) -> None:
        """See ``GroupEnv.send``."""
        self._both.range.check(actions, self.num_envs)
        self._both.send(self._place, actions.astype(np.int32))

    def receive(self) -> Step:
        """See ``GroupEnv.receive``."""
        return self._episodes.step(*self._both.receive(self._place))

    def close(self) -> None:
        """See ``GroupEnv.close``."""
        self._both.close()
