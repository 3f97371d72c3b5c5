"""``tengen bench actors`` works, and its shares match its rates."""

import json

import pytest

from tengen import cli

WORDS = "bench actors --task CartPole-v1 --actors 1 --envs 4 --rounds 1 --seconds 0.5"


def report(capsys, *words):
    assert cli.main([*WORDS.split(), *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_shares_without_a_network(capsys):
    found = report(capsys)
    assert found["net"] == "null"
    share = found["steps_per_cpu_s"] / found["alone_per_cpu_s"]
    assert found["share_of_simulation"] == pytest.approx(share)
    assert "share_of_attainable" not in found


def test_shares_with_one(capsys):
    found = report(capsys, "--net", "mlp", "--precision", "fp32")
    parts_s = 1 / found["alone_per_cpu_s"] + 1 / found["net_per_cpu_s"]
    assert 0 < found["batch_rows"] <= 4
    assert found["share_of_attainable"] == pytest.approx(
        found["steps_per_cpu_s"] * parts_s
    )
