"""``tengen bench learner`` makes the steps that it is asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tengen import cli, learners

WORDS = "bench learner --game go/5/nosuicide/planes=minigo --net minigo:1x8 --json"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Arguments of every learner that is made."""
    made: list[Any] = []
    real = learners.Learner

    def make(config: Any, *args: Any, **options: Any) -> Any:
        made.append((config, options["device"]))
        return real(config, *args, **options | {"device": "cpu"})

    monkeypatch.setattr(learners, "Learner", make)
    return made


@pytest.mark.parametrize(("batch", "num_shards"), [(1, 1), (16, 2)])
def test_a_batch_has_two_parts_unless_it_is_too_small(
    made: list[Any], capsys: pytest.CaptureFixture[str], batch: int, num_shards: int
) -> None:
    words = f"{WORDS} --games 1 --seconds 0.1 --batch {batch}"
    assert cli.main(words.split()) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["batch"], report["shards"]) == (batch, num_shards)
    assert report["rows_per_s"] > 0
    ((config, device),) = made
    assert (config.batch_size, config.num_shards) == (batch, num_shards)
    assert device == "cpu"


def test_steps_are_made_on_the_device_that_is_named(
    made: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tengen.inference.config._num_gpus", lambda: 2)
    words = f"{WORDS} --games 1 --seconds 0.1 --batch 16 --shards 1 --device cuda:1"
    assert cli.main(words.split()) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["device"] == "cuda:1"
    ((config, device),) = made
    assert (config.num_shards, config.device, device) == (1, "cuda:1", "cuda:1")
