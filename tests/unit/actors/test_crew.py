"""Self-play towards devices plays the games of self-play by threads."""

from __future__ import annotations

import dataclasses
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from tengen import _core, games
from tengen.actors import SelfplayConfig, play_generation
from tengen.actors.crew import crew_on_devices
from tengen.errors import UsageError
from tengen.experience import ExperienceWriter
from tengen.inference import LaneBackend, RowLayout
from tengen.inference.device import unpack_rows
from tengen.search import SearchConfig
from tengen.tensors import TensorSpec
from tests.refusals import refused
from tests.unit.conftest import PLAIN

NUM_GAMES = 30
SCORED = dataclasses.replace(
    PLAIN, outputs={**PLAIN.outputs, "score": TensorSpec(shape=(2,))}
)


def answer(planes, policy, value, score=None):
    """A made-up network: each row's answers depend on its planes alone, bit for bit."""
    flat = planes.reshape(len(planes), -1).astype(np.float64)
    places = np.arange(flat.shape[1])
    for action in range(policy.shape[1]):
        policy[:, action] = (flat * np.sin(places * (action + 1))).sum(1) % 4.0
    value[:] = np.sin((flat * (places + 1)).sum(1))
    if score is not None:
        score[:, 0] = 5 * np.sin((flat * (places + 2)).sum(1))
        score[:, 1] = 1 + value


class ThreadBackend:
    """A ``Backend`` of the made-up network."""

    name, version, precision, batch_shape = "torch", "0", "fp32", "dynamic"

    signature = SCORED

    def bind(self, inputs, outputs, state=None):
        class Runner:
            def run(self, num_rows):
                arrays = {**inputs, **outputs}
                answer(**{name: array[:num_rows] for name, array in arrays.items()})

        return Runner()


class FakeLane:
    def __init__(self, owner, layout, device):
        self.rows = np.zeros((owner.max_rows, layout.num_bytes), np.uint8)
        self.outputs = {
            "policy": np.zeros((owner.max_rows, owner.num_actions), np.float32),
            "value": np.zeros(owner.max_rows, np.float32),
            "score": np.zeros((owner.max_rows, 2), np.float32),
        }
        self.device = device
        self._owner = owner
        self._layout = layout

    def run(self, num_rows):
        self._owner.on_batch(num_rows)
        planes = unpack_rows(torch.from_numpy(self.rows[:num_rows]), self._layout)
        answers = {name: array[:num_rows] for name, array in self.outputs.items()}
        answer(planes.numpy(), **answers)


class FakeDevices(ThreadBackend):
    """A ``LaneBackend`` of the made-up network."""

    def __init__(
        self, num_actions, num_devices=1, max_rows=8, on_batch=lambda num_rows: None
    ):
        self.num_actions = num_actions
        self.num_devices = num_devices
        self.max_rows = max_rows
        self.notes: list[str] = []
        self.on_batch = on_batch
        self.layouts: list[RowLayout] = []

    def rate(self, num_rows, seconds):
        return 1.0

    def open_lanes(self, layout, num_rows):
        self.layouts.append(layout)
        return [
            FakeLane(self, layout, device)
            for _ in range(4)
            for device in range(self.num_devices)
        ]


def play(folder, game, backend, num_threads, on_progress=None, **config):
    """Returns the report, and the bytes of the sealed games."""
    queue = _core.GameQueue(seed=5, generation=1, model=0, num_games=NUM_GAMES)
    settings = {
        "games_per_generation": NUM_GAMES,
        "full_simulations": 12,
        "max_opening_plies": 3,
        "search": SearchConfig(policy="gumbel"),
        "num_slots": 4,
    }
    with ExperienceWriter(folder, 1) as writer:
        segment = writer.open_games(1, game)
        try:
            report = play_generation(
                games.make(game),
                SelfplayConfig(**{**settings, **config}),
                backend,
                queue,
                segment.sink,
                num_threads=num_threads,
                on_progress=on_progress,
            )
        finally:
            segment.close()
        path = writer.seal(1)
    return report, path.read_bytes()


def test_the_fakes_are_what_they_stand_for():
    assert isinstance(FakeDevices(7), LaneBackend)
    assert not isinstance(ThreadBackend(), LaneBackend)
    backend = FakeDevices(7)
    assert backend.name == "torch"


@pytest.mark.parametrize(
    ("num_threads", "num_devices", "max_rows"),
    [(1, 1, 8), (2, 1, 3), (3, 2, 4), (2, 1, 1000)],
)
def test_the_games_are_those_of_threads(tmp_path, num_threads, num_devices, max_rows):
    alone, wanted = play(tmp_path / "a", "connect4", ThreadBackend(), 1)
    backend = FakeDevices(7, num_devices, max_rows)
    report, found = play(tmp_path / "b", "connect4", backend, num_threads)
    assert found == wanted
    assert report.num_games == alone.num_games == NUM_GAMES
    assert report.num_plies == alone.num_plies
    assert report.num_threads == num_threads
    assert backend.layouts == [RowLayout((4, 6, 7))]


def test_games_in_which_the_score_counts_are_those_of_threads(tmp_path):
    counts = SearchConfig(policy="gumbel", score_weight=0.4)
    _, usual = play(tmp_path / "a", "go/4", ThreadBackend(), 1)
    _, wanted = play(tmp_path / "b", "go/4", ThreadBackend(), 1, search=counts)
    assert wanted != usual
    devices = FakeDevices(17, max_rows=4)
    _, found = play(tmp_path / "c", "go/4", devices, 2, search=counts)
    assert found == wanted


@pytest.mark.parametrize("backend", [ThreadBackend(), FakeDevices(17)])
def test_scores_that_count_need_a_backend_that_has_them(tmp_path, backend):
    backend.signature = PLAIN
    counts = SearchConfig(score_weight=0.4)
    with refused(UsageError, "search.score_weight (0.4)"):
        play(tmp_path, "go/4", backend, 1, search=counts)


def test_the_report_tells_of_the_devices_batches(tmp_path):
    sizes = []
    lock = threading.Lock()

    def on_batch(num_rows):
        with lock:
            sizes.append(num_rows)

    backend = FakeDevices(7, max_rows=8, on_batch=on_batch)
    report, _ = play(tmp_path, "connect4", backend, 2)
    assert report.num_batches == len(sizes)
    assert report.num_evaluations == sum(sizes)
    assert report.batch_capacity == 8
    assert max(sizes) <= 8
    for share in (report.cores_busy, report.wait_s / report.threads_s):
        assert 0.0 <= share <= 1.0
    assert 0.0 < report.inference_s / report.threads_s <= 1.0


def test_shares_of_threads_add_up(tmp_path):
    report, _ = play(tmp_path, "connect4", ThreadBackend(), 2)
    assert report.wait_s == 0.0
    assert report.batch_capacity == 4
    assert 0.0 < report.cores_busy <= 1.0
    assert report.inference_s + report.tree_s <= report.threads_s * 1.01


def test_a_device_that_fails_ends_the_generation(tmp_path):
    left = [5]

    def on_batch(num_rows):
        left[0] -= 1
        if left[0] == 0:
            raise RuntimeError("the device is gone")

    backend = FakeDevices(7, on_batch=on_batch)
    before = set(threading.enumerate())
    with refused(RuntimeError, "the device is gone"):
        play(tmp_path, "connect4", backend, 3)
    assert set(threading.enumerate()) <= before


def test_a_game_in_python_has_dense_rows(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "games"))
    sys.modules.pop("own_games", None)
    task = "own_games:TicTacToe"
    backend = FakeDevices(9)
    _, found = play(tmp_path / "a", task, backend, 2)
    _, wanted = play(tmp_path / "b", task, ThreadBackend(), 1)
    assert found == wanted
    assert backend.layouts == [RowLayout((3, 3, 3), is_packed=False)]


@pytest.mark.parametrize(
    ("num_slots", "num_left", "num_devices", "at_once"),
    [
        (1, 1000, 1, 3 * 8),  # as many as three batches want
        (1, 1000, 2, 2 * 3 * 8),
        (50, 1000, 1, 2 * 50),  # as many as are asked for
        (1, 10, 1, 10),  # no more than are left of the generation
    ],
)
def test_games_at_once(tmp_path, num_slots, num_left, num_devices, at_once):
    config = SelfplayConfig(num_slots=num_slots, games_per_generation=1500)
    finished = list(range(1500 - num_left))
    queue = _core.GameQueue(
        seed=0, generation=1, model=0, num_games=1500, finished=finished
    )
    backend = FakeDevices(7, num_devices)
    with ExperienceWriter(tmp_path, 1) as writer:
        segment = writer.open_games(1, "connect4")
        crew = crew_on_devices(config, "connect4", backend, queue, segment.sink, 2)
        segment.close()
    slots = [len(worker.planes) for worker in crew.workers]
    assert len(set(slots)) == 1
    assert at_once <= sum(slots) < at_once + len(slots)
    # Three groups of games a thread.
    assert len(slots) == 2 * 3


def test_stopping_the_queue_ends_it(tmp_path):
    queue = _core.GameQueue(seed=5, generation=1, model=0, num_games=1_000_000)
    with ExperienceWriter(tmp_path, 1) as writer:
        segment = writer.open_games(1, "connect4")
        report = play_generation(
            games.make("connect4"),
            SelfplayConfig(games_per_generation=1_000_000, num_slots=4),
            FakeDevices(7),
            queue,
            segment.sink,
            num_threads=2,
            on_progress=lambda num_games, _: queue.stop() if num_games > 3 else None,
            progress_interval_s=0.01,
        )
        segment.close()
    assert 3 < report.num_games < 1_000_000


def test_games_by_minigo_are_those_of_threads(tmp_path):
    how = {
        "search": SearchConfig(policy="minigo", minigo_virtual_losses=3),
        "full_probability": 0.5,
        "cheap_simulations": 4,
    }
    alone, wanted = play(tmp_path / "a", "connect4", ThreadBackend(), 1, **how)
    assert alone.batch_capacity == 12
    assert 4 < alone.batch_rows <= 12
    backend = FakeDevices(7, max_rows=8)
    report, found = play(tmp_path / "b", "connect4", backend, 2, **how)
    assert found == wanted
    assert report.num_simulations == alone.num_simulations
