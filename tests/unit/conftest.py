"""What the tests of several parts share: senseless players, a counting environment."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen.evaluation import ModelPlayer
from tengen.tensors import Signature, TensorSpec

# Of backends that answer any game; nobody checks the shapes.
PLAIN = Signature(
    inputs={"planes": TensorSpec(shape=(1, 1, 1))},
    outputs={"policy": TensorSpec(shape=(1,)), "value": TensorSpec()},
)


class HashRunner:
    """Answers each row by a hash of its planes: a fixed, senseless network."""

    def __init__(self, salt, inputs, outputs):
        self.salt = salt
        self.arrays = inputs["planes"], outputs["policy"], outputs["value"]

    def run(self, num_rows):
        planes, policy, value = self.arrays
        for row in range(num_rows):
            seed = zlib.crc32(planes[row].tobytes(), self.salt)
            rng = np.random.default_rng(seed)
            policy[row] = rng.standard_normal(policy.shape[1])
            value[row] = rng.uniform(-1, 1)


class HashBackend:
    name = "hash"
    version = "1"
    precision: Any = "fp32"
    batch_shape: Any = "dynamic"
    signature = PLAIN

    def __init__(self, salt=0):
        self.salt = salt

    def bind(self, inputs, outputs, state=None):
        return HashRunner(self.salt, inputs, outputs)


@pytest.fixture
def hash_player():
    """Makes a model player of a game without a model."""

    def make(task, name="hash", backend=None, salt=0):
        backend = backend or HashBackend(salt)
        return ModelPlayer(name=name, task=task, backend=backend)

    return make


@pytest.fixture
def install_page(tmp_path, monkeypatch):
    """Returns a function that adds the module of a page to a package, by its kind.

    The page has one block, and names the module's file and that a test runs it.
    """
    installed = []

    def install(page, package, family):
        text = (Path(__file__).parents[2] / "docs" / "tutorials" / page).read_text()
        (block,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
        folder = f"src/{package.__name__.replace('.', '/')}"
        (kind,) = re.findall(rf"`{folder}/(\w+)\.py`\. A test runs it", text)
        (tmp_path / f"{kind}.py").write_text(block)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        installed.append((family, kind, f"{package.__name__}.{kind}"))
        return kind

    yield install
    for family, kind, module in installed:
        family._kinds.pop(kind)
        del sys.modules[module]


@pytest.fixture
def type_in(monkeypatch):
    """Returns a function that replaces stdin with lines, or with a fake terminal."""

    def put(text):
        stdin = io.StringIO(text) if isinstance(text, str) else text
        monkeypatch.setattr("sys.stdin", stdin)

    return put


@pytest.fixture
def give_cores(monkeypatch):
    """Returns a function that makes this process see so many cores."""

    def give(number):
        monkeypatch.setattr("tengen.run.machine.available_cores", lambda: number)

    return give


@pytest.fixture
def give_gpus(monkeypatch):
    """Returns a function that makes torch see so many GPUs, which are the CPU.

    The function returns the list of the GPUs that are opened, by name. ``rates`` has
    the rows a second for some batch sizes; other sizes exceed the GPU's memory.
    """

    def give(number, device=None, rates=None):
        import torch

        from tests.host_device import HostDevice

        opened = []

        def open_gpu(word):
            opened.append(word)
            return (device or HostDevice)()

        def rate(self, num_rows, seconds):
            if num_rows not in rates:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return rates[num_rows]

        module = "tengen.inference.device_backend"
        monkeypatch.setattr("tengen.inference.config._num_gpus", lambda: number)
        monkeypatch.setattr(f"{module}.CudaDevice", open_gpu)
        # Forgets the batch sizes that fitted the devices of earlier tests.
        monkeypatch.setattr(f"{module}._fitting_rows", {})
        if rates is not None:
            monkeypatch.setattr(f"{module}.DeviceBackend.rate", rate)
        return opened

    return give


@pytest.fixture
def make_counting_env():
    """Returns a function that makes a counting environment; skips without Gymnasium.

    Its observations say where they come from: [seeded tag, episode, step, action].
    Episode e has ``lengths[e % len(lengths)]`` steps; it terminates where e is even
    and is truncated where e is odd. A step's reward is 10 * episode + step.
    """
    gymnasium = pytest.importorskip("gymnasium")

    class CountingEnv(gymnasium.Env):
        def __init__(self, lengths, first_action):
            self.observation_space = gymnasium.spaces.Box(-1e6, 1e6, (4,), np.float64)
            self.action_space = gymnasium.spaces.Discrete(3, start=first_action)
            self._lengths = lengths
            self._episode = -1
            self._is_over = True

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            if seed is not None:
                self._episode = -1
            self._tag = float(self.np_random.integers(1000))
            self._episode += 1
            self._step = 0
            self._is_over = False
            return self._observation(-1), {}

        def step(self, action):
            assert not self._is_over, "stepped past the end of an episode"
            assert self.action_space.contains(action)
            self._step += 1
            self._is_over = (
                self._step == self._lengths[self._episode % len(self._lengths)]
            )
            is_even = self._episode % 2 == 0
            return (
                self._observation(action),
                10.0 * self._episode + self._step,
                self._is_over and is_even,
                self._is_over and not is_even,
                {},
            )

        def _observation(self, action):
            return np.array([self._tag, self._episode, self._step, action], np.float64)

    def make(lengths=(3, 2), first_action=0):
        return CountingEnv(lengths, first_action)

    return make


def make_run(path, task, agent, net, models, **meta):
    """Makes a run of models (number, weights as tensors), exported by ``exporter``."""
    from tengen.models import ModelMeta, publish_model
    from tengen.run import RunDirectory

    exporter, config = meta.pop("exporter", None), meta.pop("config", {})
    run = RunDirectory.create_or_resume(path)
    run.write_run({"config": config})
    for number, state in models:
        about = ModelMeta(
            task=task,
            agent=agent,
            net=net,
            generation=number,
            num_steps=number,
            num_samples=0,
            sha256={},
            **meta,
        )
        tensors = {name: tensor.numpy() for name, tensor in state.items()}
        publish_model(run.models.entry(number), about, tensors, exporter)
    return run


@pytest.fixture(scope="session")
def publish_run():
    """Makes a run of a game whose models are untrained."""
    import torch

    from tengen import games
    from tengen.models import ModelExporter
    from tengen.nets import ResNetConfig, board_of

    def make(path, task, numbers=(0,), *, play=None, exports=True, **heads):
        net = ResNetConfig(num_blocks=2, num_channels=8, head_channels=4, **heads)
        signature = net.signature(board_of(games.make(task)).signature)
        # An export takes seconds; without one torch plays.
        exporter = ModelExporter() if exports else None

        def weights(number):
            torch.manual_seed(number)
            return net.build(signature).state_dict()

        models = ((number, weights(number)) for number in numbers)
        about = {"signature": signature, "play": play, "exporter": exporter}
        return make_run(path, task, "alphazero", net, models, **about)

    return make


@pytest.fixture(scope="session")
def publish_agent():
    """Makes a run of an environment whose models have random weights.

    What they do differs from one observation to the next, as that of new ones hardly
    does.
    """
    import torch

    from tengen import games
    from tengen.agents import Agent
    from tengen.nets import MlpConfig

    def make(path, task, kind="ppo", numbers=(0,), **settings):
        names = {"lstm_units", "shares_parameters"} & settings.keys()
        net = {name: settings.pop(name) for name in names}
        agent = Agent.of_kind(kind, "agent")(**settings)
        games.allow(task)
        net = MlpConfig(num_layers=1, num_units=16, **net)
        signature = net.signature(agent.signature(task))

        def weights(number):
            rng = torch.Generator().manual_seed(number)
            state = net.build(signature).state_dict()
            return {
                name: 2 * torch.randn(tensor.shape, generator=rng)
                for name, tensor in state.items()
            }

        models = ((number, weights(number)) for number in numbers)
        about = {"signature": signature, "config": {"task": task}}
        return make_run(path, task, kind, net, models, **about)

    return make


@pytest.fixture
def small_disk(tmp_path):
    """A disk of a few megabytes, which ``remount`` makes read-only."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tengen-test", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this process may not mount a disk")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def remount(disk):
    """Makes a small disk read-only."""
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


def fill(disk):
    """Fills a small disk to the last byte; returns the file that does."""
    ballast = disk / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        for size in (1 << 16, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue
    return ballast
