"""Groups of benchmark processes that are stopped and resumed together."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from tengen.errors import RunError

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

STEP_AT_RANDOM = """
import sys, numpy
from tengen import envs
task, num_envs, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
env = envs.make(task, num_envs, seed)
num_envs = env.num_envs  # a row for each agent
mask_of = lambda observation: observation.get("action_mask")
spec, random = env.spec.actions, numpy.random.default_rng(seed)
if spec.is_discrete:
    def draw():
        parts = [random.integers(0, n, num_envs) for n in spec.num_choices]
        return numpy.stack(parts, 1) if spec.shape else parts[0]
else:
    def draw():
        low, high = (numpy.clip(bounds, -1, 1) for bounds in (spec.low, spec.high))
        return random.uniform(low, high, (num_envs, *spec.shape)).astype("float32")
actions = [draw() for _ in range(256)]
mask = mask_of(env.reset())
steps = 0
while True:
    for action in actions[:16]:
        if mask is not None:
            action = envs.legal_actions(action, mask, spec.num_choices)
        mask = mask_of(env.step(action).observation)
        steps += num_envs
    actions = actions[16:] + actions[:16]
    print(steps, flush=True)
"""
"""A Python program with the arguments TASK NUM_ENVS SEED. It steps NUM_ENVS copies of
the environment with random actions, and repeatedly prints the total number of steps."""


class ProcessGroup:
    """A group of benchmark processes that are stopped and resumed together."""

    def __init__(self, commands: Sequence[Sequence[str]]) -> None:
        self.processes = [
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            for command in commands
        ]
        self.lines = [0] * len(commands)
        for place, process in enumerate(self.processes):
            reader = threading.Thread(
                target=self._read, args=(place, process), daemon=True
            )
            reader.start()

    @property
    def cpu_s(self) -> float:
        """CPU-seconds that the processes have used so far, in total."""
        total = 0
        for process in self.processes:
            try:
                stat = Path(f"/proc/{process.pid}/stat").read_text()
            except OSError:
                raise RunError("a process of the benchmark has ended") from None
            fields = stat.rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / _TICKS_PER_S

    def signal(self, number: signal.Signals) -> None:
        """Sends the signal ``number`` to all processes."""
        for process in self.processes:
            process.send_signal(number)

    def check(self) -> None:
        """Raises RunError if a process has ended."""
        for process in self.processes:
            if process.poll() is not None:
                raise RunError(
                    "benchmark process (one of several) ended with exit code "
                    f"{process.returncode}; run tengen train on the task to see why"
                )

    def _read(self, place: int, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with contextlib.suppress(ValueError):
                self.lines[place] = int(line)


@contextlib.contextmanager
def processes(commands: Sequence[Sequence[str]]) -> Iterator[ProcessGroup]:
    """Context manager that starts one process per command, and kills them at its exit.

    Args:
        commands: The commands. A command may print its number of steps so far.
    """
    group = ProcessGroup(commands)
    try:
        yield group
    finally:
        group.signal(signal.SIGKILL)
        for process in group.processes:
            process.wait()
