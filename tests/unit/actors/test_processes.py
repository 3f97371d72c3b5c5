"""Self-play in processes: the same games, whoever dies."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from pathlib import Path

import pytest
import torch

from tengen import _core, games
from tengen.actors import (
    GamesOfGeneration,
    GenerationReport,
    SelfplayConfig,
    SelfplayProcesses,
    play_generation,
)
from tengen.actors.processes import _Child, _give, _start, _sum
from tengen.config import to_dict
from tengen.errors import RunError, UsageError
from tengen.inference import InferenceConfig, open_backend
from tengen.models import ModelExporter
from tengen.nets import ResNetConfig
from tengen.run import close_owned
from tengen.tensors import BoardSpec
from tests.refusals import refused

OWN_GAMES = Path(__file__).parents[1] / "games"
INFERENCE = InferenceConfig(backend="openvino", precision="fp32", batch_shape="dynamic")
CONFIG = SelfplayConfig(games_per_generation=20, full_simulations=12, num_slots=4)
NUM_GAMES = CONFIG.games_per_generation

# Tic-tac-toe that does as files beside it say.
OBEYING = """
import ctypes, os, signal, threading, time
from pathlib import Path
from own_games import TicTacToe

HERE = Path(__file__).parent

class Obeying(TicTacToe):
    num_applied = 0

    def apply(self, state, action):
        # Checks of a new game are in the main thread.
        playing = threading.current_thread() is not threading.main_thread()
        Obeying.num_applied += playing
        end_s = time.monotonic() + 600
        while self.is_held():
            assert time.monotonic() < end_s, "nobody let go"
            time.sleep(0.01)
        if sum(cell != 0 for cell in state) > 3:
            if (HERE / "die").exists():
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                (HERE / "die once").unlink()
                for fork in (os.fork, ctypes.PyDLL(None).fork):
                    self.leave_behind(fork)
                os.kill(os.getpid(), signal.SIGKILL)
            except FileNotFoundError:
                pass
        return super().apply(state, action)

    def leave_behind(self, fork):
        # As a simulator does: the child outlives this process.
        child = fork()
        if child == 0:
            signal.pause()
            os._exit(0)
        with (HERE / "children").open("a") as file:
            file.write(f"{child}\\n")

    def is_held(self):
        # The file says after how many moves of this process its games stand still.
        try:
            return Obeying.num_applied > int((HERE / "hold").read_text())
        except FileNotFoundError:
            return False

    def observation(self, state):
        planes = super().observation(state)
        return planes[1:] if (HERE / "break").exists() else planes
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The files of a small random model for tic-tac-toe that a backend reads."""
    path = tmp_path_factory.mktemp("model")
    features = BoardSpec(
        num_planes=3, height=3, width=3, num_actions=9, policy_layout="cells"
    )
    config = ResNetConfig(num_blocks=2, num_channels=8, head_channels=8)
    torch.manual_seed(0)
    signature = config.signature(features.signature)
    state = config.build(signature).state_dict()
    weights = {name: tensor.numpy() for name, tensor in state.items()}
    graph = ModelExporter().export(signature, config, weights)
    (path / "model.onnx").write_bytes(graph)
    meta = {"net": to_dict(config), "signature": to_dict(signature)}
    (path / "meta.json").write_text(json.dumps(meta))
    return path


def left_behind(folder):
    """Returns the processes that games have left behind."""
    file = folder / "children"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the game, where these processes and this one look for it."""
    (tmp_path / "obeying.py").write_text(OBEYING)
    monkeypatch.syspath_prepend(str(OWN_GAMES))
    games.allow("obeying:Obeying")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{OWN_GAMES}:{':'.join(sys.path)}")
    yield tmp_path
    for child in left_behind(tmp_path):
        os.kill(child, signal.SIGKILL)  # it was there all the time


@pytest.fixture
def processes():
    made = SelfplayProcesses(2)
    yield made
    children = [child.process for child in made._children]
    made.close()
    assert all(child.poll() is not None for child in children)


def generation(model, finished=None):
    return GamesOfGeneration(
        task="obeying:Obeying",
        config=CONFIG,
        directory=model,
        inference=INFERENCE,
        seed=7,
        generation=3,
        model=1,
        finished=finished or [],
    )


def in_order(frames):
    return sorted(frames, key=lambda frame: _core.decode_game(frame).game_index)


def expected(model, config=CONFIG, may_resign=False):
    """Returns the games as a thread of this process plays them."""
    queue = _core.GameQueue(
        seed=7, generation=3, model=1, num_games=NUM_GAMES, may_resign=may_resign
    )
    sink = _core.GameFrames()
    backend = open_backend(model, INFERENCE, 1)
    game = games.make("own_games:TicTacToe")
    play_generation(game, config, backend, queue, sink, num_threads=1)
    return in_order(sink.take())


def counted(model, monkeypatch):
    """Returns the games, and how many moves were applied to play and search them."""
    num_applied = 0
    import own_games

    game = own_games.TicTacToe
    apply = game.apply

    def count(self, state, action):
        nonlocal num_applied
        num_applied += 1
        return apply(self, state, action)

    monkeypatch.setattr(game, "apply", count)
    return expected(model), num_applied


def play(processes, what, watch=lambda *_: None):
    frames = []
    report = processes.play(what, frames.append, watch)
    assert report.num_games == len(frames)
    return in_order(frames), report


def test_several_play_the_same_games(model, folder):
    num_processes = 3
    processes = SelfplayProcesses(num_processes)
    try:
        frames, report = play(processes, generation(model))
        assert frames == expected(model)
        assert report.num_threads == num_processes
        plies = sum(len(_core.decode_game(frame).plies) for frame in frames)
        assert report.num_plies == report.num_rows == plies
        assert report.num_evaluations > 0
        # A batch is one process's.
        assert 0 < report.batch_rows <= report.batch_capacity == CONFIG.num_slots
        # The processes stay, and play what is not durable yet.
        rest, _ = play(processes, generation(model, finished=[0, 1, 5]))
        assert rest == [f for i, f in enumerate(frames) if i not in (0, 1, 5)]
    finally:
        processes.close()


def test_they_resign_where_they_may(processes, model, folder):
    config = dataclasses.replace(CONFIG, resign_above=0.0)
    what = dataclasses.replace(generation(model), config=config)
    played, _ = play(processes, what)
    assert played == expected(model, config)
    resigned, _ = play(processes, dataclasses.replace(what, may_resign=True))
    assert resigned == expected(model, config, may_resign=True)
    assert resigned != played


def test_a_process_that_is_killed_is_replaced_beside_what_its_game_forked(
    processes, model, folder
):
    (folder / "die once").touch()
    frames, _ = play(processes, generation(model))
    assert not (folder / "die once").exists()
    assert frames == expected(model)
    assert len(left_behind(folder)) == 2


def test_one_that_dies_again_and_again_ends_the_turn(processes, model, folder):
    processes.first_backoff_s = 0.0
    (folder / "die").touch()
    with refused(RunError, "obeying:Obeying", "5", "signal 9"):
        play(processes, generation(model))


def test_a_game_that_breaks_is_named_as_in_a_thread(processes, model, folder):
    play(processes, generation(model))
    (folder / "break").touch()
    with refused(UsageError, "Obeying.observation") as caught:
        play(processes, generation(model))
    assert "\n" not in str(caught.value)


def test_a_stop_keeps_what_is_finished(processes, model, folder, monkeypatch):
    hold = folder / "hold"
    all_games, num_applied = counted(model, monkeypatch)
    # Of two processes each stands still after three tenths of all moves: the first of
    # its games have ended by then, and the last ones have not begun.
    hold.write_text(str(3 * num_applied // 10))
    calls = 0

    def stop_then_let_go(num_games, _):
        nonlocal calls
        if num_games > 0:
            processes.stop()
            calls += 1
        if calls > 10:  # by now the stop has arrived
            hold.unlink(missing_ok=True)

    frames, _ = play(processes, generation(model), stop_then_let_go)
    # On a busy machine the first turn may end before it was watched so often.
    hold.unlink(missing_ok=True)
    finished = [int(_core.decode_game(frame).game_index) for frame in frames]
    assert 0 < len(frames) < NUM_GAMES
    rest, _ = play(processes, generation(model, finished))
    assert in_order([*frames, *rest]) == all_games


def test_fewer_games_are_the_first_ones_and_the_same(
    processes, model, folder, monkeypatch
):
    hold = folder / "hold"
    all_games, num_applied = counted(model, monkeypatch)
    hold.write_text(str(3 * num_applied // 10))  # as where they are stopped
    calls = 0

    def want_fewer_then_let_go(num_games, _):
        nonlocal calls
        if num_games > 0:
            if calls == 0:
                processes.play_fewer(12)
            calls += 1
        if calls > 10:
            hold.unlink(missing_ok=True)

    frames, report = play(processes, generation(model), want_fewer_then_let_go)
    finished = [int(_core.decode_game(frame).game_index) for frame in frames]
    assert set(range(12)) <= set(finished)
    assert len(set(finished)) == len(finished) < NUM_GAMES
    assert frames == [all_games[index] for index in finished]
    assert report.num_evaluations > 0
    # The next generation is whole again.
    again, _ = play(processes, generation(model))
    assert again == all_games


def test_a_process_that_dies_plays_no_more_than_the_fewer_games(
    processes, model, folder
):
    hold = folder / "hold"
    hold.write_text("0")
    (folder / "die once").touch()
    num_wanted = 0

    def want_fewer_then_let_go(*_):
        nonlocal num_wanted
        if num_wanted == 0:
            num_wanted = 4
            processes.play_fewer(num_wanted)
            hold.unlink()

    frames, _ = play(processes, generation(model), want_fewer_then_let_go)
    assert not (folder / "die once").exists()
    finished = {int(_core.decode_game(frame).game_index) for frame in frames}
    assert {0, 1, 2, 3} <= finished


def test_no_process_outlives_its_parent_in_a_game_that_never_ends(
    model, folder, monkeypatch
):
    _, num_applied = counted(model, monkeypatch)
    # Only one process plays: some of its games end before the hold, and not all.
    (folder / "hold").write_text(str(num_applied // 2))
    process, connection = _start()
    child = _Child(process, connection, left=set(range(NUM_GAMES)))
    _give(child, generation(model))
    while not connection.recv()["games"]:
        pass  # the games that end before the hold
    close_owned(connection)
    assert process.wait(900) == 0


def test_no_process_outlives_its_parent(folder):
    ours, theirs = Pipe()
    descriptor = theirs.fileno()
    command = [sys.executable, "-m", "tengen.actors.play_process", str(descriptor)]
    child = subprocess.Popen(command, pass_fds=[descriptor])
    theirs.close()
    time.sleep(0.1)
    ours.close()
    assert child.wait(timeout=900) == 0


def test_what_every_process_notes_is_said_once():
    reports = [
        GenerationReport(num_rows=3, batch_capacity=16, notes=("smaller",)),
        GenerationReport(num_rows=4, batch_capacity=8, notes=("smaller", "slower")),
    ]
    total = _sum(reports, 2, 1.5)
    assert total == GenerationReport(
        num_games=2,
        num_rows=7,
        batch_capacity=16,
        seconds=1.5,
        notes=("smaller", "slower"),
    )


def test_what_nobody_typed_is_given_to_no_process(processes, model, folder):
    untyped = dataclasses.replace(generation(model), task="obeying:TicTacToe")
    with refused(UsageError, "task (obeying:TicTacToe)"):
        play(processes, untyped)
    assert processes._children == []


def test_a_process_imports_no_module_of_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mark = "from pathlib import Path\nPath(__file__).with_name('marker').touch()\n"
    (tmp_path / "numpy.py").write_text(mark)
    process, connection = _start()
    close_owned(connection)
    assert process.wait(900) == 0
    assert not (tmp_path / "marker").exists()
