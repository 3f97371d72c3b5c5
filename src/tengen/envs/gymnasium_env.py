"""An ``Env`` that steps copies of a Gymnasium environment (Gymnasium 1.1 or later)."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.distribution import pip_install
from tengen.envs.copies import (
    MOST_WORDS,
    RAISED,
    UnfitError,
    as_end,
    as_reward,
    copy_seeds,
    one_line,
    raised,
    said,
)
from tengen.envs.env import Arrays, EnvSpec, Step
from tengen.envs.masks import ActionMasks
from tengen.envs.spaces import Actions, Observations
from tengen.errors import EnvError, TengenError, UsageError
from tengen.tensors import ACTION_MASK


def import_gymnasium() -> Any:
    """Imports Gymnasium lazily and returns the module.

    Raises:
        UsageError: Gymnasium is not installed or too old.
    """
    try:
        import gymnasium
        import gymnasium.vector
    except ImportError as error:
        raise UsageError(
            f"gymnasium (missing) cannot be imported: {error}; "
            f"{pip_install('gymnasium>=1.1')}"
        ) from None
    if not hasattr(gymnasium.vector, "AutoresetMode"):
        raise UsageError(
            f"gymnasium ({gymnasium.__version__}) must be 1.1 or later; "
            f"{pip_install('--upgrade', 'gymnasium>=1.1')}"
        )
    return gymnasium


def as_gymnasium(kind: type[Any]) -> type[Any]:
    """Returns a subclass of both ``kind`` and ``gymnasium.Env``.

    ``kind`` itself cannot derive from ``gymnasium.Env``, because Gymnasium is optional.

    Raises:
        UsageError: Gymnasium is not installed.
    """
    return type(kind.__name__, (kind, import_gymnasium().Env), {})


def make_guarded(make: Callable[[], Any], name: str) -> Any:
    """Calls ``make`` and returns its result; error messages contain ``name``.

    Raises:
        UsageError: ``make`` raised.
    """
    gymnasium = import_gymnasium()
    try:
        return make()
    except TengenError:
        raise
    except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
        raise UsageError(
            f'environment ("{name}") needs a missing package: '
            f"{one_line(error, MOST_WORDS)}; install it"
        ) from error
    except gymnasium.error.Error as error:
        told = one_line(error, MOST_WORDS)
        raise UsageError(
            f'environment ("{name}") is rejected by Gymnasium: {told}; choose another'
        ) from error
    except RAISED as error:
        raise UsageError(
            f'environment ("{name}") must not raise when it is made, but raised '
            f"{said(error)}; correct it"
        ) from error


@contextlib.contextmanager
def closed_if_refused(made: Any) -> Iterator[None]:
    """Context of the checks of a new environment, which is closed if a check raises."""
    try:
        yield
    except RAISED:
        with contextlib.suppress(*RAISED):
            made.close()
        raise


# Names of the values that Gymnasium's reset and step return, in order.
_RESET = ("observation", "info")
_STEP = ("observation", "reward", "terminated", "truncated", "info")


# The unwrapped environment of every open copy in this process, by Python's id().
_STEPPED: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def _claim(made: Any, name: str) -> None:
    """Registers a new copy, so that no other copy can be the same object."""
    try:
        core = getattr(made, "unwrapped", made)
        is_known = _STEPPED.get(id(core)) is core
        _STEPPED[id(core)] = core
    except RAISED as error:
        raise UsageError(
            f'environment ("{name}") must be an ordinary object, but it raised '
            f'{said(error)}; add "__weakref__" if its class has __slots__'
        ) from error
    if is_known:
        raise UsageError(
            f'environment ("{name}") must be a new object for each copy, but '
            "one was returned twice; create one in each call"
        )


class OwnCopies:
    """Base class of adapters that step the copies of an environment one by one.

    Attributes:
        spec: The environment's spec.
        num_envs: Number N of rows.
    """

    spec: EnvSpec
    num_envs: int
    _actions: Actions
    _observations: Observations
    _masks: ActionMasks | None = None
    _is_mask_in_info = False

    def __init__(
        self, make_one: Callable[[], Any], num_copies: int, seed: int, name: str
    ) -> None:
        """Creates the copies, and calls ``_read_spaces``; see the subclasses."""
        self._seeds = copy_seeds(seed, num_copies)
        self._name = name
        self._is_over = np.zeros(num_copies, np.bool_)
        self._copies: list[Any] = []
        try:
            for _ in range(num_copies):
                made = make_guarded(make_one, name)
                with closed_if_refused(made):
                    self._check_made(made)
                    _claim(made, name)
                self._copies.append(made)
            self._read_spaces()
        except (UsageError, EnvError):
            self.close()
            raise

    def reset(self) -> Arrays:
        """Restarts all copies from the seed; see ``Env.reset``."""
        observation = self._zeros()
        for copy, seed in enumerate(self._seeds):
            self._reset_copy(copy, observation, seed=seed)
        self._is_over = np.zeros(len(self._copies), np.bool_)
        return self._finished(observation)

    def own_action(self, action: NDArray[Any]) -> Any:
        """Converts an action to the Gymnasium action space; see ``Env.own_action``."""
        return self._actions.to_own(action)

    def close(self) -> None:
        """Releases the copies' resources; see ``Env.close``."""
        while self._copies:
            copy = self._copies.pop()
            try:
                _STEPPED.pop(id(getattr(copy, "unwrapped", copy)), None)
                copy.close()
            except RAISED as error:
                raise raised(self._name, error, "close()") from error

    def _zeros(self) -> Arrays:
        arrays = self._observations.zeros(self.num_envs)
        if self._masks is not None:
            arrays[ACTION_MASK] = self._masks.all_legal(self.num_envs)
        return arrays

    def _answer(
        self, copy: int, method: str, parts: Sequence[str], *args: Any, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Calls a method of a copy, which must return the values named in ``parts``."""
        try:
            answer = getattr(self._copies[copy], method)(*args, **kwargs)
        except TengenError:
            raise
        except RAISED as error:
            raise raised(self._name, error, f"copy {copy}") from error
        if not isinstance(answer, tuple) or len(answer) != len(parts):
            raise self._misshapen(method, answer, parts, copy)
        return answer

    def _misshapen(
        self, method: str, answer: object, parts: Sequence[str], copy: int
    ) -> UnfitError:
        """Returns the error for a method that returned the wrong number of values."""
        shown = f"{len(answer)} values" if isinstance(answer, tuple) else None
        return UnfitError(
            f"{method} ({shown or type(answer).__name__})",
            self._name,
            copy,
            f"must return {len(parts)} values: {', '.join(parts)}",
        )

    def _check_made(self, made: Any) -> None:
        """Raises UsageError if a new environment cannot be a copy."""
        raise NotImplementedError

    def _read_spaces(self) -> None:
        """Sets the attributes that depend on the spaces of the copies."""
        raise NotImplementedError

    def _reset_copy(self, copy: int, observation: Arrays, **kwargs: int) -> None:
        """Resets a copy and writes what it observes."""
        raise NotImplementedError

    def _finished(self, observation: Arrays) -> Arrays:
        """Returns the observations of a reset or step, after a check of all rows."""
        self._observations.check_finite(observation)
        return observation


class GymnasiumEnv(OwnCopies):
    """Copies of a Gymnasium environment in this process, stepped one after the other.

    Attributes:
        spec: The environment's spec.
        num_envs: Number N of copies.
    """

    def __init__(
        self,
        make_one: Callable[[], Any],
        num_envs: int,
        seed: int,
        *,
        name: str,
        frames_per_step: int = 1,
        is_hard: bool = False,
        is_partial: bool = False,
        finds_masks: bool = True,
    ) -> None:
        """Creates ``num_envs`` copies of the environment.

        Args:
            make_one: Creates a ``gymnasium.Env``; called ``num_envs`` times.
            num_envs: Number of copies, at least 1.
            seed: Seed of the copies, at least 0; see ``copy_seeds``.
            name: The task's name, for error messages and the spec.
            frames_per_step: See ``EnvSpec``.
            is_hard: See ``EnvSpec``.
            is_partial: See ``EnvSpec``.
            finds_masks: Whether ``info`` may have an action mask. If the actions are
                discrete, the first copy is then reset once, to look for the mask.

        Raises:
            EnvError: The first reset failed.
            UsageError: A copy cannot be created, is not a ``gymnasium.Env``, differs
                from the first copy in its spaces, or is the same object as an existing
                copy; or a space is of an unsupported kind.
        """
        self.num_envs = num_envs
        self._finds_masks = finds_masks
        super().__init__(make_one, num_envs, seed, name)
        first = self._copies[0]
        self.spec = EnvSpec(
            name=name,
            observations=self._observations.specs,
            pixel_scales=self._observations.pixel_scales,
            has_large_vectors=self._observations.has_large_vectors,
            actions=self._actions.spec,
            max_episode_steps=_registered(first, "max_episode_steps"),
            reward_threshold=_registered(first, "reward_threshold"),
            frames_per_step=frames_per_step,
            is_hard=is_hard,
            is_partial=is_partial,
            has_action_mask=self._masks is not None,
        )

    def step(self, actions: NDArray[Any]) -> Step:
        """Steps every copy; see ``Env.step``.

        Raises:
            EnvError: A copy raised, or an observation or a reward is invalid.
            RunError: An action is out of range.
        """
        native = self._actions.to_gymnasium(actions, self.num_envs)
        observation = self._zeros()
        reward = np.zeros(self.num_envs, np.float32)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        is_reset, name = self._is_over, self._name
        for i in range(self.num_envs):
            if is_reset[i]:
                self._reset_copy(i, observation)
                continue
            try:
                answer = self._copies[i].step(native[i])
                if not isinstance(answer, tuple) or len(answer) != len(_STEP):
                    raise self._misshapen("step", answer, _STEP, i)
                self._observations.write(answer[0], observation, i)
                reward[i] = as_reward(answer[1], name, i)
                terminated[i] = as_end("terminated", answer[2], name, i)
                truncated[i] = as_end("truncated", answer[3], name, i)
                is_terminal = bool(terminated[i])
                self._write_mask(answer, observation, i, is_terminal=is_terminal)
            except TengenError:
                raise
            except RAISED as error:
                raise raised(name, error, f"copy {i}") from error
        self._is_over = terminated | truncated
        observation = self._finished(observation)
        return Step(observation, reward, terminated, truncated, is_reset)

    def observed(self, observation: Any) -> Arrays:
        """Converts a Gymnasium observation to arrays; see ``Env.observed``."""
        arrays = self._observations.read(observation)
        if self._masks is not None and not self._is_mask_in_info:
            arrays[ACTION_MASK] = self._masks.read(observation.get(ACTION_MASK))
        return arrays

    def _check_made(self, made: Any) -> None:
        gymnasium = import_gymnasium()
        if not isinstance(made, gymnasium.Env):
            raise UsageError(
                f'environment ("{self._name}") must be a gymnasium.Env, not '
                f"{type(made).__name__}; derive it from that class"
            )
        for space in ("observation_space", "action_space"):
            if not isinstance(getattr(made, space, None), gymnasium.Space):
                raise UsageError(
                    f'environment ("{self._name}") must have an attribute {space}, a '
                    f"gymnasium.Space; set it in __init__"
                )
        first = self._copies[0] if self._copies else made
        if (made.observation_space, made.action_space) != (
            first.observation_space,
            first.action_space,
        ):
            raise UsageError(
                f'environment ("{self._name}") must have the same spaces in every '
                f"copy; correct it"
            )

    def _read_spaces(self) -> None:
        first, name = self._copies[0], self._name
        self._actions = Actions(first.action_space, name)
        self._observations = Observations(
            first.observation_space, name, self._actions.spec
        )
        self._masks = self._masks_of()

    def _reset_copy(self, copy: int, observation: Arrays, **kwargs: int) -> None:
        answer = self._answer(copy, "reset", _RESET, **kwargs)
        try:
            self._observations.write(answer[0], observation, copy)
            self._write_mask(answer, observation, copy, is_terminal=False)
        except TengenError:
            raise
        except RAISED as error:
            raise raised(self._name, error, f"copy {copy}") from error

    def _masks_of(self) -> ActionMasks | None:
        """Returns the reader of action masks; None if no choice is ever illegal."""
        self._finds_masks = self._finds_masks and self._actions.spec.is_discrete
        if not self._actions.spec.is_discrete:
            return None
        if not self._observations.has_mask:
            if not self._finds_masks:
                return None
            # Only a reset shows whether ``info`` has masks.
            _, info = self._answer(0, "reset", _RESET, seed=self._seeds[0])
            if not (isinstance(info, Mapping) and ACTION_MASK in info):
                return None
            self._is_mask_in_info = True
        return ActionMasks(self._actions.spec, self._name)

    def _write_mask(
        self, answer: tuple[Any, ...], arrays: Arrays, i: int, *, is_terminal: bool
    ) -> None:
        if self._masks is not None:
            source = answer[-1] if self._is_mask_in_info else answer[0]
            mask = arrays[ACTION_MASK][i]
            self._masks.write(source, mask, i, is_terminal=is_terminal)
        elif self._finds_masks and ACTION_MASK in answer[-1]:
            raise EnvError(
                f"info (with {ACTION_MASK}) of {self._name} (copy {i}) must have a "
                "mask after the first reset too; correct the environment"
            )


def _registered(env: Any, name: str) -> Any:
    """Returns the numeric field ``name`` of ``env.spec``; None if it is missing."""
    value = getattr(getattr(env, "spec", None), name, None)
    return value if isinstance(value, int | float) else None
