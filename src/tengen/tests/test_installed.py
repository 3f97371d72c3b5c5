"""Tests the parts of an installation: core, training, match, store and web page."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tengen
from tengen import _core
from tengen.play import Player
from tengen.store import Column, Selector, Store, StoreConfig, TableConfig

TIMEOUT_S = 300
# Settings for a few seconds of training, without initial measurements.
BRIEF = (
    "agent.actor.games_per_generation=24",
    "agent.actor.full_simulations=8",
    "agent.actor.num_slots=8",
    "store.min_rows=50",
    "store.limiter.samples_per_row=2",
    "learner.batch_size=32",
    "agent.rating.time_share=0",
    "agent.rating.final_games=0",
    "inference.precision=fp32",
    "inference.batch_shape=dynamic",
)


def command(*words: str) -> list[str]:
    # -P imports the installed package, not a package in the current folder.
    return [sys.executable, "-P", "-m", "tengen", *words]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words), capture_output=True, text=True, timeout=TIMEOUT_S
    )


def report_of(*words: str) -> dict[str, Any]:
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "tictactoe"
    settings = [word for setting in BRIEF for word in ("--set", setting)]
    report_of("train", "tictactoe", "--out", str(path), "--games", "24", *settings)
    return path


def test_the_core_is_of_this_package() -> None:
    assert run("--version").stdout.split() == ["tengen", tengen.__version__]
    folder = Path(tengen.__file__).parent
    assert Path(_core.__file__ or "").parent == folder
    assert (folder / "py.typed").exists()
    assert (folder / "_core.pyi").exists()


def test_the_kernels_are_some_that_this_processor_has() -> None:
    names = _core.kernel_names()
    assert "baseline" in names
    assert _core.kernel_name() in names


def test_a_game_is_played_to_its_end() -> None:
    state = tengen.games.make("connect4").new_state()
    while not state.is_terminal():
        state.apply(int(state.legal_actions()[0]))
    assert sorted(state.returns()) == [-1, 1]


def test_a_run_trains_and_says_where_it_is(trained: Path) -> None:
    report = report_of("status", str(trained))
    assert report["latest_model"] == 1
    assert report["progress"]["num_games"] == 24


def test_a_model_plays(trained: Path) -> None:
    with tengen.load(str(trained)) as player:
        assert isinstance(player, Player)
        assert 0 <= player.choose([], simulations=8) < 9
    report = report_of(
        "match", str(trained), "random", "--games", "4", "--simulations", "8"
    )
    assert report["games"] == 4


def test_a_store_gives_back_what_it_took() -> None:
    table = TableConfig(
        name="replay",
        columns={"frame": Column(dtype="uint8", shape=(3,))},
        sampler=Selector(kind="fifo"),
        max_items=10,
        max_times_sampled=1,
        num_steps=1,
    )
    store = Store(StoreConfig.of([table], memory_bytes=1 << 20))
    with store.writer("writer", "replay") as writer:
        for number in range(3):
            writer.append({"frame": np.full(3, number, np.uint8)})
            writer.insert("replay", num_steps=1)
    with store.table("replay").sampler(3) as sampler:
        batch = next(iter(sampler))
        assert (
            batch.columns["frame"].reshape(-1).tolist() == [0] * 3 + [1] * 3 + [2] * 3
        )
        batch.ack()


def test_the_page_answers(trained: Path) -> None:
    pytest.importorskip("starlette", reason="tengen-rl[serve] is not installed")
    pytest.importorskip("uvicorn", reason="tengen-rl[serve] is not installed")
    words = command("serve", str(trained), "--port", "0")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split(" at ")[1].split()[0]
            with urllib.request.urlopen(address, timeout=TIMEOUT_S) as reply:
                assert b"<html" in reply.read()
        finally:
            server.terminate()
