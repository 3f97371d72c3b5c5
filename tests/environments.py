"""Small environments: tasks to learn in seconds, and ones that misbehave on purpose.

Each class is made without arguments, so that a task may name it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from numpy.typing import NDArray

Reset = tuple[Any, dict[str, Any]]
Answer = tuple[Any, float, bool, bool, dict[str, Any]]


class Catch(gymnasium.Env):
    """A ball falls down a 10 x 5 board, a paddle is moved under it: +1, or -1.

    Observation ``[10, 5]`` float32: ones at the ball and the paddle. Actions: left,
    stay, right. An episode has nine steps. Source: Osband et al. 2020, "Behaviour Suite
    for Reinforcement Learning", catch.
    """

    num_rows, num_columns = 10, 5

    def __init__(self) -> None:
        shape = (self.num_rows, self.num_columns)
        self.observation_space = spaces.Box(0.0, 1.0, shape, np.float32)
        self.action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Reset:
        super().reset(seed=seed)
        self._row = 0
        self._ball = int(self.np_random.integers(self.num_columns))
        self._paddle = self.num_columns // 2
        return self._board(), {}

    def step(self, action: Any) -> Answer:
        moved = self._paddle + int(action) - 1
        self._paddle = min(max(moved, 0), self.num_columns - 1)
        self._row += 1
        is_down = self._row == self.num_rows - 1
        reward = (1.0 if self._ball == self._paddle else -1.0) if is_down else 0.0
        return self._board(), reward, is_down, False, {}

    def _board(self) -> NDArray[np.float32]:
        board = np.zeros((self.num_rows, self.num_columns), np.float32)
        board[self._row, self._ball] = board[-1, self._paddle] = 1.0
        return board


class Reach(gymnasium.Env):
    """Two numbers are shown, and the action is to be the same: minus the square errors.

    Observation ``[2]`` in [-1, 1]; actions ``[2]``, the first between -2 and 2 and
    counted half. An episode has five steps, each with other numbers.
    """

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        high = np.array([2.0, 1.0], np.float32)
        self.action_space = spaces.Box(-high, high, dtype=np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Reset:
        super().reset(seed=seed)
        self._steps = 0
        return self._drawn(), {}

    def step(self, action: Any) -> Answer:
        self._steps += 1
        error = np.asarray(action) / (2.0, 1.0) - self._shown
        return self._drawn(), -float(np.sum(error**2)), False, self._steps == 5, {}

    def _drawn(self) -> NDArray[np.float32]:
        self._shown = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self._shown


class ReachFar(gymnasium.Env):
    """A place is shown, and the action is to be there: 1 minus the share it is away.

    Observation ``[1]`` in [0, 1]; action ``[1]`` between 0 and 1000, the place times
    1000. An episode has ten steps. Always 0 gets 5, always the middle 7.5.
    """

    low, high = 0.0, 1000.0

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Box(self.low, self.high, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Reset:
        super().reset(seed=seed)
        self._steps = 0
        return self._drawn(), {}

    def step(self, action: Any) -> Answer:
        self._steps += 1
        share = (float(action[0]) - self.low) / (self.high - self.low)
        reward = 1.0 - abs(share - float(self._place[0]))
        return self._drawn(), reward, False, self._steps == 10, {}

    def _drawn(self) -> NDArray[np.float32]:
        self._place = self.np_random.uniform(0, 1, 1).astype(np.float32)
        return self._place


class MaskedCartPole(CartPoleEnv):
    """CartPole that shows places and no speeds, ``[2]``; truncated after 500 steps."""

    max_steps = 500

    def __init__(self) -> None:
        super().__init__()
        high = self.observation_space.high[[0, 2]]
        self.observation_space = spaces.Box(-high, high, dtype=np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Reset:
        self._steps = 0
        state, info = super().reset(seed=seed, options=options)
        return state[[0, 2]], info

    def step(self, action: Any) -> Answer:
        self._steps += 1
        state, reward, is_down, _, info = super().step(action)
        return state[[0, 2]], reward, is_down, self._steps >= self.max_steps, info


class Nested(gymnasium.Env):
    """Which half of an image is bright, exchanged where a number is negative.

    Observation: ``image`` ``[1, size, size]`` uint8, ``vector`` ``[2]`` float32: the
    number, 1 or -1, and the share of the episode that is over. Actions: left, right.
    The right one gives 1. An episode has ten steps; by chance it gives 5.
    """

    num_steps = 10

    def __init__(self, size: int = 8) -> None:
        self._size = size
        image = spaces.Box(0, 255, (1, size, size), np.uint8)
        vector = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = spaces.Dict({"image": image, "vector": vector})
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Reset:
        super().reset(seed=seed)
        self._steps = 0
        return self._drawn(), {}

    def step(self, action: Any) -> Answer:
        self._steps += 1
        reward = float(action == self._answer)
        return self._drawn(), reward, self._steps == self.num_steps, False, {}

    def _drawn(self) -> dict[str, NDArray[Any]]:
        side, is_exchanged = (int(bit) for bit in self.np_random.integers(2, size=2))
        self._answer = side ^ is_exchanged
        image = np.zeros((1, self._size, self._size), np.uint8)
        half = self._size // 2
        image[:, :, side * half : (side + 1) * half] = 255
        share = self._steps / self.num_steps
        vector = np.array([1.0 - 2.0 * is_exchanged, share], np.float32)
        return {"image": image, "vector": vector}


class MultiChoice(gymnasium.Env):
    """Three choices, of 2, 3 and 4, each to be what the observation shows for it.

    Observation ``[9]`` float32: a one for each choice in a part of its own. The reward
    is the share of choices that are right. An episode has ten steps; by chance it
    gives 3.6.
    """

    num_steps = 10
    num_choices = (2, 3, 4)

    def __init__(self) -> None:
        length = sum(self.num_choices)
        self.observation_space = spaces.Box(0.0, 1.0, (length,), np.float32)
        self.action_space = spaces.MultiDiscrete(self.num_choices)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Reset:
        super().reset(seed=seed)
        self._steps = 0
        return self._drawn(), {}

    def step(self, action: Any) -> Answer:
        self._steps += 1
        reward = float(np.mean(self._wanted == action))
        return self._drawn(), reward, self._steps == self.num_steps, False, {}

    def _drawn(self) -> NDArray[np.float32]:
        self._wanted = self.np_random.integers(self.num_choices)
        shown = [
            np.eye(length, dtype=np.float32)[wanted]
            for length, wanted in zip(self.num_choices, self._wanted, strict=True)
        ]
        return np.concatenate(shown)


class Plain(gymnasium.Env):
    """Counts its steps and does nothing else, what those below are made of.

    Observation ``[2]`` float32: steps of this episode, and since it was made. Each step
    gives 1; an episode has ten and is truncated.
    """

    num_steps = 10

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 1e6, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.total = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Reset:
        super().reset(seed=seed)
        self._steps = 0
        return self._counts(), {}

    def step(self, action: Any) -> Answer:
        self._steps += 1
        self.total += 1
        return self._counts(), 1.0, False, self._steps == self.num_steps, {}

    def _counts(self) -> NDArray[np.float32]:
        return np.array([self._steps, self.total], np.float32)


class InMainThread(Plain):
    """Handles a signal, which Python allows in the main thread alone."""

    def __init__(self) -> None:
        super().__init__()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def step(self, action: Any) -> Answer:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        return super().step(action)


class Sleeping(Plain):
    """Each step takes some seconds."""

    def __init__(self, seconds: float = 0.01) -> None:
        super().__init__()
        self.seconds = seconds

    def step(self, action: Any) -> Answer:
        time.sleep(self.seconds)
        return super().step(action)


class Raising(Plain):
    """Step ``at`` since it was made, counted from 1, and those after it raise."""

    def __init__(self, at: int = 15) -> None:
        super().__init__()
        self.at = at

    def step(self, action: Any) -> Answer:
        answer = super().step(action)
        if self.total >= self.at:
            raise ValueError(f"step {self.total} of this environment always fails")
        return answer


class Stumbling(Raising):
    """Raises ``times`` times in all, whoever makes it; the working directory tells.

    Args:
        at: The step since it was made, from which on it raises.
        times: After which it works.
    """

    def __init__(self, at: int = 15, times: int = 3) -> None:
        super().__init__(at)
        self.times = times

    def step(self, action: Any) -> Answer:
        if self.total + 1 >= self.at:
            for i in range(self.times):
                with contextlib.suppress(FileExistsError):
                    Path(f"stumbled-{i}").touch(exist_ok=False)
                    return super().step(action)
        return Plain.step(self, action)


class Counted(Plain):
    """Counts how often it was made."""

    num_made = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).num_made += 1


class RaisingInClose(Plain):
    """Cannot be closed."""

    def close(self) -> None:
        raise OSError("the port is gone")


class HangingForGood(Plain):
    """Hangs in a step and swallows what would interrupt it."""

    def step(self, action: Any) -> Answer:
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(1000)


class HangingWhenMade(Plain):
    """Cannot be made, and does not say so."""

    def __init__(self) -> None:
        super().__init__()
        threading.Event().wait()


class HangingInClose(Plain):
    """Cannot be closed, and does not say so."""

    def close(self) -> None:
        threading.Event().wait()


class CrashingInClose(Plain):
    """Ends the process by a signal where it is closed once it was stepped."""

    def close(self) -> None:
        if self.total:
            os.kill(os.getpid(), signal.SIGSEGV)


class HangingInCloseAtLast(Plain):
    """Cannot be closed once it was stepped, and does not say so."""

    def close(self) -> None:
        if self.total:
            threading.Event().wait()


class KeepingTheProcess(Plain):
    """Has a thread that is no daemon and never ends, once it was stepped."""

    def step(self, action: Any) -> Answer:
        if not self.total:
            threading.Thread(target=threading.Event().wait).start()
        return super().step(action)


class Waiting(Plain):
    """The N-th that is made waits for a file ``go-N`` in the working directory.

    A file ``came-N`` says that it waits.
    """

    def __init__(self) -> None:
        super().__init__()
        number = len([*Path().glob("came-*")])
        Path(f"came-{number}").touch()
        while not Path(f"go-{number}").exists():
            time.sleep(0.01)


class Simulated(Waiting):
    """The same, beside a process of its own that it ends when it is closed."""

    def __init__(self) -> None:
        self.simulator = subprocess.Popen(["sleep", "100000"])
        super().__init__()

    def close(self) -> None:
        self.simulator.kill()
        self.simulator.wait()


class Hanging(Plain):
    """Step ``at`` since it was made, counted from 1, never returns."""

    def __init__(self, at: int = 15) -> None:
        super().__init__()
        self.at = at

    def step(self, action: Any) -> Answer:
        answer = super().step(action)
        if self.total >= self.at:
            threading.Event().wait()
        return answer


class Spinning(Hanging):
    """As ``Hanging``, but in C code that keeps the interpreter's lock for ever.

    A file ``spins-NUMBER`` in the working directory says which process does.
    """

    def step(self, action: Any) -> Answer:
        answer = Plain.step(self, action)
        if self.total >= self.at:
            Path(f"spins-{os.getpid()}").touch()
            ctypes.PyDLL(None).pause()
        return answer


class Crashing(Raising):
    """Step ``at`` since it was made, counted from 1, ends the process by a signal."""

    def step(self, action: Any) -> Answer:
        answer = Plain.step(self, action)
        if self.total >= self.at:
            os.kill(os.getpid(), signal.SIGSEGV)
        return answer


class Exiting(Raising):
    """Step ``at`` since it was made, counted from 1, ends the process in silence."""

    def step(self, action: Any) -> Answer:
        answer = Plain.step(self, action)
        if self.total >= self.at:
            os._exit(3)
        return answer


class NotFinite(Plain):
    """Step ``at`` since it was made, counted from 1, and those after it are NaN.

    Args:
        at: The first such step.
        what: ``observation`` or ``reward``, what is NaN.
    """

    def __init__(self, at: int = 15, what: str = "observation") -> None:
        super().__init__()
        self.at = at
        self.what = what

    def step(self, action: Any) -> Answer:
        counts, reward, is_over, is_cut, info = super().step(action)
        if self.total >= self.at:
            if self.what == "reward":
                reward = float("nan")
            else:
                counts[0] = np.nan
        return counts, reward, is_over, is_cut, info


class Shown(Catch):
    """Catch with pictures, and no word about them when it is made."""

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["rgb_array"],
        "render_fps": 60,
    }

    def render(self) -> Any:
        return np.repeat(self._board()[..., None], 3, axis=2).astype(np.uint8) * 255


class ShownAsAsked(Shown):
    """The same, which draws where it was told to, as Gymnasium's own do."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__()
        self.render_mode = render_mode

    def render(self) -> Any:
        return super().render() if self.render_mode == "rgb_array" else None


class ShownBadly(Shown):
    """It returns no picture."""

    def render(self) -> Any:
        return None


class NotShown(Shown):
    """It cannot draw here."""

    def render(self) -> Any:
        raise ValueError("no screen")
