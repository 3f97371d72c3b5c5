"""Small environments for tests: some are learned in seconds, others fail on purpose.

Each class can be created without arguments, so a task can name the class.
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

Reset = tuple[Any, dict[str, Any]]
Answer = tuple[Any, float, bool, bool, dict[str, Any]]


class Catch(gymnasium.Env):
    """Catch: a ball falls down a 10 x 5 board, and the agent moves a paddle under it.

    The last step gives 1 if the paddle catches the ball, else -1. Observation
    ``[10, 5]`` float32: ones at the ball and the paddle. Actions: left, stay, right. An
    episode has nine steps. Source: Osband et al. 2020, "Behaviour Suite", catch.
    """

    num_rows, num_columns = 10, 5

    def __init__(self):
        shape = (self.num_rows, self.num_columns)
        self.observation_space = spaces.Box(0.0, 1.0, shape, np.float32)
        self.action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._row = 0
        self._ball = int(self.np_random.integers(self.num_columns))
        self._paddle = self.num_columns // 2
        return self._board(), {}

    def step(self, action):
        moved = self._paddle + int(action) - 1
        self._paddle = min(max(moved, 0), self.num_columns - 1)
        self._row += 1
        is_down = self._row == self.num_rows - 1
        reward = (1.0 if self._ball == self._paddle else -1.0) if is_down else 0.0
        return self._board(), reward, is_down, False, {}

    def _board(self):
        board = np.zeros((self.num_rows, self.num_columns), np.float32)
        board[self._row, self._ball] = board[-1, self._paddle] = 1.0
        return board


class Reach(gymnasium.Env):
    """The agent must output the two observed numbers; reward: minus squared error.

    Observation ``[2]`` in [-1, 1]. Action ``[2]``: the first entry is in [-2, 2] and is
    halved, the second in [-1, 1]. An episode has five steps with new numbers per step.
    """

    def __init__(self):
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        high = np.array([2.0, 1.0], np.float32)
        self.action_space = spaces.Box(-high, high, dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._steps = 0
        return self._drawn(), {}

    def step(self, action):
        self._steps += 1
        error = np.asarray(action) / (2.0, 1.0) - self._shown
        return self._drawn(), -float(np.sum(error**2)), False, self._steps == 5, {}

    def _drawn(self):
        self._shown = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self._shown


class ReachFar(gymnasium.Env):
    """The agent must output the observed number times 1000; reward: 1 - error / 1000.

    Observation ``[1]`` in [0, 1], action ``[1]`` in [0, 1000]. Episodes have ten steps.
    The mean return of the constant action 0 is 5, and of the constant action 500 7.5.
    """

    low, high = 0.0, 1000.0

    def __init__(self):
        self.observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Box(self.low, self.high, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._steps = 0
        return self._drawn(), {}

    def step(self, action):
        self._steps += 1
        share = (float(action[0]) - self.low) / (self.high - self.low)
        reward = 1.0 - abs(share - float(self._place[0]))
        return self._drawn(), reward, False, self._steps == 10, {}

    def _drawn(self):
        self._place = self.np_random.uniform(0, 1, 1).astype(np.float32)
        return self._place


class MaskedCartPole(CartPoleEnv):
    """CartPole that observes positions, not velocities, ``[2]``; limit: 500 steps."""

    max_steps = 500

    def __init__(self):
        super().__init__()
        high = self.observation_space.high[[0, 2]]
        self.observation_space = spaces.Box(-high, high, dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        self._steps = 0
        state, info = super().reset(seed=seed, options=options)
        return state[[0, 2]], info

    def step(self, action):
        self._steps += 1
        state, reward, is_down, _, info = super().step(action)
        return state[[0, 2]], reward, is_down, self._steps >= self.max_steps, info


class Steady(gymnasium.Wrapper):
    """CartPole-v1 with slow steps, which leave the processor to other processes."""

    def __init__(self):
        super().__init__(gymnasium.make("CartPole-v1"))

    def step(self, action):
        time.sleep(0.001)
        return self.env.step(action)


class Nested(gymnasium.Env):
    """The agent must choose the bright half of an image, or the dark half if inverted.

    Observation: ``image`` ``[1, size, size]`` uint8, ``vector`` ``[2]`` float32: the
    sign, -1 if inverted, else 1, and the elapsed share of the episode. Actions: left,
    right. A correct action gives 1. An episode has ten steps; the mean return is 5 for
    random actions.
    """

    num_steps = 10

    def __init__(self, size=8):
        self._size = size
        image = spaces.Box(0, 255, (1, size, size), np.uint8)
        vector = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = spaces.Dict({"image": image, "vector": vector})
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._steps = 0
        return self._drawn(), {}

    def step(self, action):
        self._steps += 1
        reward = float(action == self._answer)
        return self._drawn(), reward, self._steps == self.num_steps, False, {}

    def _drawn(self):
        side, is_exchanged = (int(bit) for bit in self.np_random.integers(2, size=2))
        self._answer = side ^ is_exchanged
        image = np.zeros((1, self._size, self._size), np.uint8)
        half = self._size // 2
        image[:, :, side * half : (side + 1) * half] = 255
        share = self._steps / self.num_steps
        vector = np.array([1.0 - 2.0 * is_exchanged, share], np.float32)
        return {"image": image, "vector": vector}


class MultiChoice(gymnasium.Env):
    """The agent must copy three observed choices, from 2, 3 and 4 values.

    Observation ``[9]`` float32: the one-hot encodings of the choices, concatenated. The
    reward is the share of correct choices. An episode has ten steps; random actions
    have a mean return of 3.6.
    """

    num_steps = 10
    num_choices = (2, 3, 4)

    def __init__(self):
        length = sum(self.num_choices)
        self.observation_space = spaces.Box(0.0, 1.0, (length,), np.float32)
        self.action_space = spaces.MultiDiscrete(self.num_choices)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._steps = 0
        return self._drawn(), {}

    def step(self, action):
        self._steps += 1
        reward = float(np.mean(self._wanted == action))
        return self._drawn(), reward, self._steps == self.num_steps, False, {}

    def _drawn(self):
        self._wanted = self.np_random.integers(self.num_choices)
        shown = [
            np.eye(length, dtype=np.float32)[wanted]
            for length, wanted in zip(self.num_choices, self._wanted, strict=True)
        ]
        return np.concatenate(shown)


class Plain(gymnasium.Env):
    """Base class of the environments below; only counts its steps.

    Observation ``[2]`` float32: steps of this episode, and steps since construction.
    Each step gives 1; an episode is truncated after ten steps.
    """

    num_steps = 10

    def __init__(self):
        self.observation_space = spaces.Box(0.0, 1e6, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.total = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._steps = 0
        return self._counts(), {}

    def step(self, action):
        self._steps += 1
        self.total += 1
        return self._counts(), 1.0, False, self._steps == self.num_steps, {}

    def _counts(self):
        return np.array([self._steps, self.total], np.float32)


class InMainThread(Plain):
    """Sets a signal handler, which Python allows only in the main thread."""

    def __init__(self):
        super().__init__()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def step(self, action):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        return super().step(action)


class Raising(Plain):
    """Raises in all steps from step ``at`` on, counted from 1 since construction."""

    def __init__(self, at=15):
        super().__init__()
        self.at = at

    def step(self, action):
        answer = super().step(action)
        if self.total >= self.at:
            self.fail()
        return answer

    def fail(self):
        raise ValueError(f"step {self.total} of this environment always fails")


class Stumbling(Raising):
    """Raises ``times`` times in total over all instances and processes.

    Files in the working directory count the errors.

    Args:
        at: The first step that raises, counted from 1 since construction.
        times: The number of errors.
    """

    def __init__(self, at=15, times=3):
        super().__init__(at)
        self.times = times

    def step(self, action):
        if self.total + 1 >= self.at:
            for i in range(self.times):
                with contextlib.suppress(FileExistsError):
                    Path(f"stumbled-{i}").touch(exist_ok=False)
                    return super().step(action)
        return Plain.step(self, action)


class Counted(Plain):
    """Counts its instances."""

    num_made = 0

    def __init__(self):
        super().__init__()
        type(self).num_made += 1


class RaisingInClose(Plain):
    """Raises in ``close``."""

    def close(self):
        raise OSError("the port is gone")


class HangingForGood(Plain):
    """Hangs in ``step`` and catches every exception that would interrupt the step."""

    def step(self, action):
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(1000)


class HangingWhenMade(Plain):
    """Hangs in its constructor."""

    def __init__(self):
        super().__init__()
        threading.Event().wait()


class HangingInClose(Plain):
    """Hangs in ``close``."""

    def close(self):
        threading.Event().wait()


class CrashingInClose(Plain):
    """Kills the process with a signal in ``close``, if it has made a step."""

    def close(self):
        if self.total:
            os.kill(os.getpid(), signal.SIGSEGV)


class HangingInCloseAtLast(Plain):
    """Hangs in ``close``, if it has made a step."""

    def close(self):
        if self.total:
            threading.Event().wait()


class KeepingTheProcess(Plain):
    """In the first step, starts a non-daemon thread that never ends."""

    def step(self, action):
        if not self.total:
            threading.Thread(target=threading.Event().wait).start()
        return super().step(action)


class Waiting(Plain):
    """Instance N creates ``came-N`` and waits for ``go-N`` in the working directory."""

    def __init__(self):
        super().__init__()
        number = len([*Path().glob("came-*")])
        Path(f"came-{number}").touch()
        while not Path(f"go-{number}").exists():
            time.sleep(0.01)


class Simulated(Waiting):
    """A ``Waiting`` that starts a child process and kills the process in ``close``."""

    def __init__(self):
        self.simulator = subprocess.Popen(["sleep", "100000"])
        super().__init__()

    def close(self):
        self.simulator.kill()
        self.simulator.wait()


class Hanging(Raising):
    """Hangs in step ``at``, counted from 1 since construction."""

    def fail(self):
        threading.Event().wait()


class Spinning(Hanging):
    """Creates a file ``spins-PID``, then hangs in C code without releasing the GIL."""

    def fail(self):
        Path(f"spins-{os.getpid()}").touch()
        ctypes.PyDLL(None).pause()


class Crashing(Raising):
    """Kills the process with SIGSEGV in step ``at``, counted from 1."""

    def fail(self):
        os.kill(os.getpid(), signal.SIGSEGV)


class Exiting(Raising):
    """Exits the process without a message in step ``at``, counted from 1."""

    def fail(self):
        os._exit(3)


class NotFinite(Plain):
    """Returns NaN from step ``at`` on, counted from 1 since construction.

    Args:
        at: The first step that returns NaN.
        what: The NaN value: ``observation`` or ``reward``.
    """

    def __init__(self, at=15, what="observation"):
        super().__init__()
        self.at = at
        self.what = what

    def step(self, action):
        counts, reward, is_over, is_cut, info = super().step(action)
        if self.total >= self.at:
            if self.what == "reward":
                reward = float("nan")
            else:
                counts[0] = np.nan
        return counts, reward, is_over, is_cut, info


class Shown(Catch):
    """Catch that renders frames and has no constructor argument ``render_mode``."""

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["rgb_array"],
        "render_fps": 60,
    }

    def render(self):
        return np.repeat(self._board()[..., None], 3, axis=2).astype(np.uint8) * 255


class ShownAsAsked(Shown):
    """Renders only if created with ``render_mode``, like Gymnasium's environments."""

    def __init__(self, render_mode=None):
        super().__init__()
        self.render_mode = render_mode

    def render(self):
        return super().render() if self.render_mode == "rgb_array" else None


class ShownBadly(Shown):
    """Returns no frame from ``render``."""

    def render(self):
        return None


class NotShown(Shown):
    """Raises in ``render``."""

    def render(self):
        raise ValueError("no screen")
