"""An environment's run in turns: the same seed, the same bytes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.runs import run_command, weights

pytest.importorskip("gymnasium")


def train(out: Path, agent: str, seed: int) -> None:
    words = [sys.executable, "-m", "tengen", "train", "CartPole-v1", "--agent", agent]
    words += ["--frames", "4k", "--seed", str(seed), "--out", str(out)]
    done = run_command([*words, "--threads", "1"])
    assert done.returncode == 0, done.stderr


def checkpoints(out: Path) -> dict[str, bytes]:
    paths = sorted((out / "checkpoints").rglob("*.safetensors"))
    return {str(path.relative_to(out)): path.read_bytes() for path in paths}


@pytest.mark.parametrize(
    "agent",
    [
        "ppo",
        pytest.param("vtrace", marks=pytest.mark.slow),
        "dqn",
        pytest.param("r2d2", marks=pytest.mark.soak),
    ],
)
def test_a_seed_gives_the_same_bytes(agent: str, tmp_path: Path) -> None:
    for name, seed in (("one", 3), ("again", 3), ("other", 4)):
        train(tmp_path / name, agent, seed)
    one, again, other = (tmp_path / name for name in ("one", "again", "other"))
    assert len(weights(one)) >= 2
    assert weights(one) == weights(again)
    assert len(checkpoints(one)) >= 1
    assert checkpoints(one) == checkpoints(again)
    assert weights(one) != weights(other)
