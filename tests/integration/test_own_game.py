"""The real command trains, resumes and rejects a user's own game."""

import json
import sys
from pathlib import Path

import pytest

from tests.integration.runs import SMALL, run_command, sealed, turns

EXAMPLES = Path(__file__).parents[2] / "examples"
SETTINGS = (
    "agent.actor.games_per_generation=8",
    "store.min_rows=20",
    "agent.actor.num_slots=4",
)

# A game that passes the check at the start, but fails later in self-play.
BREAKS_LATER = """
from own_game import Hex

class Broken(Hex):
    num_answers = 0

    def observation(self, state):
        planes = super().observation(state)
        Broken.num_answers += 1
        return planes if Broken.num_answers < 2000 else planes[:, :4]
"""


def train(task, cwd, out, games, threads=2, *settings):
    words = ["train", task, "--json", "--out", str(out)]
    words += ["--games", str(games), "--threads", str(threads)]
    for setting in (*SMALL, *SETTINGS, *settings):
        words += ["--set", setting]
    return tengen(cwd, *words)


def tengen(cwd, *words):
    return run_command([sys.executable, "-m", "tengen", *words], cwd=cwd)


def test_an_own_game_is_trained_and_resumed(tmp_path):
    for games in (16, 24):
        done = train("own_game:Hex", EXAMPLES, tmp_path / "run", 8)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout.splitlines()[-1])
        assert report["num_games"] == games - 8
        assert report["num_rows"] > 5 * report["num_games"]
    models = list((tmp_path / "run" / "models").iterdir())
    assert len(models) >= 2
    assert len(sealed(tmp_path / "run")) == 2


@pytest.mark.slow
def test_an_own_game_is_rated_and_played_where_it_is_typed(tmp_path):
    run = tmp_path / "run"
    rated = (
        "agent.rating.time_share=0.9",
        "agent.rating.num_games=2",
        "agent.rating.round_games=2",
        "agent.rating.anchor_games=2",
        'agent.rating.anchors=["random","mcts:1"]',
        "agent.rating.num_simulations=2",
        "agent.rating.final_games=2",
        "agent.rating.final_opponent=random",
    )
    done = train("own_game:Hex", EXAMPLES, run, 8, 1, *rated)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["match"]["games"] == 2
    assert f"tengen play {run} --task own_game:Hex" in done.stdout
    assert [*run.glob("eval/00000*.json")] != []
    # The process that plays and rates reports its own rates, which exclude its start.
    played = turns(run, "selfplay")
    assert played
    assert all("player" not in turn and "rows_per_s" not in turn for turn in played)
    playing = ("match", str(run), "random", "--games", "2", "--simulations", "2")
    for words in (playing, ("selfplay", str(run), "--once", "--threads", "2")):
        done = tengen(EXAMPLES, *words)
        assert done.returncode == 2
        assert done.stderr.startswith(f"tengen: task (own_game:Hex) of {run} is a prog")
        done = tengen(EXAMPLES, *words, "--task", "own_game:Hex")
        assert done.returncode == 0, done.stderr


def test_a_game_that_breaks_in_play_ends_the_run_with_one_line(tmp_path):
    (tmp_path / "breaks_later.py").write_text(BREAKS_LATER)
    (tmp_path / "own_game.py").write_text((EXAMPLES / "own_game.py").read_text())
    done = train("breaks_later:Broken", tmp_path, tmp_path / "run", 400)
    assert done.returncode == 2
    assert "Broken.observation (shape (4, 4, 5)) must be (4, 5, 5)" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert len(done.stderr.strip().splitlines()) == 1
