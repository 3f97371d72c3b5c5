"""The real command trains on a game of OpenSpiel and rejects unsupported games."""

import json
import subprocess
import sys

import pytest

from tests.integration.runs import SMALL

SETTINGS = (
    "agent.actor.games_per_generation=8",
    "store.min_rows=20",
    "agent.actor.num_slots=4",
)


def train(task, out, *extra):
    command = [sys.executable, "-m", "tengen", "train", task, "--json"]
    command += ["--out", str(out), "--games", "16", *extra]
    for setting in (*SMALL, *SETTINGS):
        command += ["--set", setting]
    return subprocess.run(command, capture_output=True, text=True, timeout=900)


def test_a_game_of_openspiel_is_trained(tmp_path):
    pytest.importorskip("pyspiel", reason="needs pip install 'open_spiel>=2.0'")
    done = train("openspiel/connect_four(rows=4,columns=5)", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["num_games"] == 16
    assert report["num_rows"] > 5 * 16
    assert len(list((tmp_path / "run" / "models").iterdir())) >= 2


def test_one_that_does_not_fit_leaves_no_run(tmp_path):
    pytest.importorskip("pyspiel", reason="needs pip install 'open_spiel>=2.0'")
    done = train("openspiel/kuhn_poker", tmp_path / "run")
    assert done.returncode == 2
    assert "must be a game without chance and of perfect information" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_without_openspiel_the_message_says_how_to_install_it(tmp_path):
    hide = "import sys; sys.modules['pyspiel'] = None; from tengen.cli import main; "
    run = "sys.exit(main(['train', 'openspiel/hex', '--out', sys.argv[1]]))"
    command = [sys.executable, "-c", hide + run, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 2
    assert "'open_spiel>=2.0'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
