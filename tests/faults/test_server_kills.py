"""One of two inference servers is killed or hangs while actors use it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tengen.games import allow
from tengen.overrides import override
from tengen.roles import RoleContext, read_config
from tengen.roles.experience import open_experience
from tengen.run import RunDirectory, service_folder
from tengen.run.actor_counts import read_actor_counts
from tests.faults.test_actor_kills import STEADY, command
from tests.integration.runs import events, process_of, turns, wait_for

pytest.importorskip("gymnasium")

NUM_GROUPS = 2
SETTINGS = (
    "launch.roles.inference.count=2",
    # All models equal the initial one, so the test can recompute recurrent states.
    "learner.optimizer.learning_rate=1e-15",
    "agent.burn_in=0",
    "agent.unroll_length=20",
    "agent.period=10",
    "store.samples_per_item=1",
    "store.max_items=20000",
)


def sessions(out: Path, server: int) -> int:
    """Returns the number of groups of copies in a server's last report."""
    told = [one for one in turns(out, "inference") if one["server"] == server]
    return int(told[-1]["num_sessions"]) if told else 0


def is_balanced(out: Path, num_actors: int) -> bool:
    half = num_actors * NUM_GROUPS // 2
    return sessions(out, 0) == sessions(out, 1) == half


def frames(out: Path) -> int:
    return read_actor_counts(RunDirectory(out)).get("num_rows", 0)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are found there")
@pytest.mark.parametrize(
    ("number", "num_actors"),
    [
        pytest.param(signal.SIGKILL, 2, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, 4, marks=pytest.mark.soak),
        pytest.param(signal.SIGSTOP, 4, marks=pytest.mark.soak),
    ],
)
def test_actors_of_a_lost_server_go_to_the_other_and_come_back(
    number: signal.Signals,
    num_actors: int,
    tmp_path: Path,
    start: Callable[[list[str]], subprocess.Popen[str]],
) -> None:
    out = tmp_path / "run"
    words = [f"--set={setting}" for setting in SETTINGS]
    words += ["--actors", str(num_actors), "--frames", "10M"]
    run = start(command(out, "r2d2", *words))
    wait_for(lambda: is_balanced(out, num_actors))
    victim = process_of(out, "inference", 1)
    assert victim is not None
    os.kill(victim, number)
    wait_for(lambda: sessions(out, 0) == num_actors * NUM_GROUPS)
    made = frames(out)
    wait_for(lambda: frames(out) > made + 500)
    if number == signal.SIGSTOP:
        assert process_of(out, "inference", 1) == victim
        os.kill(victim, signal.SIGCONT)
    wait_for(lambda: is_balanced(out, num_actors))
    answered = turns(out, "inference")
    made = frames(out)
    wait_for(lambda: frames(out) > made + 500)
    assert {one["server"] for one in turns(out, "inference")[len(answered) - 4 :]} == {
        0,
        1,
    }
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=900)
    assert run.returncode == 130, errors
    deaths = [(death["role"], death["how"]) for death in events(out, "death")]
    killed = number == signal.SIGKILL
    assert deaths == ([("inference", "signal 9")] if killed else [])
    # Frames exclude the extra steps that mark a change of server.
    assert turns(out, "learn")[-1]["table"]["num_rows"] <= frames(out)
    names = ("store", "inference", "inference-1")
    left = [service_folder(RunDirectory(out), name) for name in names]
    assert not any(path.exists() for path in left)
    allow(STEADY)
    items = all_items(RunDirectory(out))
    check_steps(items)
    # Half of the groups (two copies each) change server twice, and two overlapping
    # sequences contain each change. Requires half of that, as not all are sampled.
    assert moves(items).any(axis=1).sum() >= 2 * (num_actors * NUM_GROUPS // 2) * 2
    check_memory(RunDirectory(out), items)


def all_items(run: RunDirectory) -> dict[str, NDArray[Any]]:
    """Returns at least 95 % of the replay's sequences, without duplicates."""
    config = override(read_config(run), ["store.samples_per_item=1000000"])
    table: Any = open_experience(config, run, RoleContext())
    found: dict[int, dict[str, NDArray[Any]]] = {}
    num_items = table.describe()["num_items"]
    while len(found) < 0.95 * num_items:
        batch = table.sample(32)
        for row, key in enumerate(map(int, batch.keys)):
            found[key] = {name: c[row] for name, c in batch.columns.items()}
        batch.ack(np.ones(len(batch.keys)))
    table.close()
    return {
        name: np.stack([item[name] for item in found.values()])
        for name in next(iter(found.values()))
    }


def moves(items: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Returns a mask ``[B, T]`` of the steps that mark a change of server."""
    return (items["is_reset"] & items["truncated"]) != 0


def check_steps(items: dict[str, NDArray[Any]]) -> None:
    """Checks that CartPole's equations yield each step from the step before it."""
    seen, action = items["observation"][:, :-1], items["action"][:, :-1]
    reached, is_move = items["observation"][:, 1:], moves(items)[:, :-1]
    np.testing.assert_array_equal(reached[is_move], seen[is_move])
    is_live = items["is_reset"][:, :-1] == 0
    np.testing.assert_allclose(
        reached[is_live], cart_pole(seen[is_live], action[is_live]), atol=1e-4
    )
    begins = (items["is_reset"][:, :-1] != 0) & ~is_move
    assert np.abs(reached[begins]).max() <= 0.05


def cart_pole(state: NDArray[np.float32], action: NDArray[np.int64]) -> NDArray[Any]:
    """Returns the next states, ``[B, 4]``."""
    x, speed, angle, turning = state.astype(np.float64).T
    force = np.where(action == 1, 10.0, -10.0)
    pull = (force + 0.05 * turning**2 * np.sin(angle)) / 1.1
    lift = 9.8 * np.sin(angle) - np.cos(angle) * pull
    turned = lift / (0.5 * (4.0 / 3.0 - 0.1 * np.cos(angle) ** 2 / 1.1))
    pushed = pull - 0.05 * turned * np.cos(angle) / 1.1
    rates = np.stack([speed, pushed, turning, turned], axis=1)
    return np.stack([x, speed, angle, turning], axis=1) + 0.02 * rates


def check_memory(run: RunDirectory, items: dict[str, NDArray[Any]]) -> None:
    """Checks that a learner computes the recurrent states that the actors stored.

    A sequence begins in the middle of the sequence before it. The state at that step is
    recomputed from the earlier sequence, and must equal the state from inference.
    """
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    config = read_config(run)
    net = config.net.build(config.agent.signature(config.task))
    newest = run.models.entry(run.models.numbers()[-1])
    net.load_state_dict(load_file(newest / "weights.safetensors"))
    period = config.agent.period
    begins = {
        items["observation"][row, :period].tobytes(): row
        for row in range(len(items["observation"]))
    }
    pairs = [
        (row, begins[key])
        for row in range(len(items["observation"]))
        if (key := items["observation"][row, period : 2 * period].tobytes()) in begins
    ]
    first, second = np.array(pairs).T
    is_first = np.zeros((period, len(first)), np.bool_)
    is_first[1:] = items["is_reset"][first, : period - 1].T != 0
    with torch.no_grad():
        _, state = net.unroll(
            {
                name: torch.from_numpy(items[name][first, :period]).transpose(0, 1)
                for name in net.signature.inputs
            },
            {
                name: torch.from_numpy(items[f"state/{name}"][first])
                for name in net.signature.state
            },
            torch.from_numpy(is_first),
        )
    # A sequence that begins after a reset has a zero state.
    goes_on = items["is_reset"][first, period - 1] == 0
    has_moved = moves(items)[first, :period].any(axis=1)
    assert has_moved.sum() > 0
    for name, computed in state.items():
        told = items[f"state/{name}"][second]
        expected = computed.numpy() * goes_on[:, None]
        np.testing.assert_allclose(told, expected, atol=1e-4, err_msg=name)


@pytest.mark.soak
def test_an_agent_learns_by_two_servers_that_are_killed_in_turns(
    tmp_path: Path, start: Callable[[list[str]], subprocess.Popen[str]]
) -> None:
    out, num_frames = tmp_path / "run", 150_000
    words = ["--actors", "2", "--frames", str(num_frames), "--seed", "1"]
    run = start(command(out, "ppo", *words, "--set=launch.roles.inference.count=2"))
    for number in range(4):
        wait_for(lambda n=number: frames(out) > (n + 1) * num_frames // 6)
        victim = process_of(out, "inference", number % 2)
        assert victim is not None
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda n=number: len(events(out, "death")) > n)
    _, errors = run.communicate(timeout=900)
    assert run.returncode == 0, errors
    assert {death["role"] for death in events(out, "death")} == {"inference"}
    # The actors' counts reach the budget, and the learner has received all steps.
    assert num_frames <= frames(out) < 1.05 * num_frames
    assert turns(out, "learn")[-1]["table"]["num_rows"] == frames(out)
    # CartPole-v0's threshold; a random policy's mean return is 22.
    assert turns(out, "actor")[-1]["mean_return"] >= 195
