"""Predictions of the auxiliary heads, averaged over the symmetries."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tengen import games
from tengen.games import Framed
from tengen.inference.torch_backend import load_head
from tengen.play import load
from tengen.play.forecast import Forecaster

MOVES = [6, 12, 8, 1, 17]


@pytest.fixture(scope="module")
def run(tmp_path_factory, publish_run):
    """Returns a run of go/5 whose untrained network has auxiliary heads."""
    path = tmp_path_factory.mktemp("runs") / "go"
    return publish_run(path, "go/5", auxiliary=True, exports=False)


@pytest.fixture(scope="module")
def forecaster(run):
    return Forecaster(run.models.entry(0))


def turned(moves, symmetry):
    game = games.make("go/5")
    return [game.transform_action(move, symmetry) for move in moves]


def test_the_mean_over_the_symmetries(run, forecaster):
    net = load_head(run.models.entry(0)).head.net
    game = games.make("go/5")
    owners, chances = np.zeros(25), []
    for symmetry in range(8):
        # Evaluates the position on a transformed board and maps the cells back.
        state = game.new_state()
        for move in turned(MOVES, symmetry):
            state.apply(move)
        with torch.no_grad():
            planes = torch.from_numpy(state.observation())[None]
            said = net.learn(planes)[2]
        chance = torch.sigmoid(said.ownership)[0].flatten().numpy()
        for cell in range(25):
            image = game.transform_action(cell, symmetry)
            owners[cell] += (2 * chance[image] - 1) / 8
        chances.append(torch.softmax(said.score[0], 0).double().numpy())
    found = forecaster.forecast(Framed(game, game), MOVES)
    assert found.ownership_to_play.shape == (5, 5)
    assert found.ownership_to_play.ravel() == pytest.approx(owners, abs=1e-5)
    points = np.arange(game.max_score * 2) - game.max_score + 0.5
    chance = np.mean(chances, axis=0)
    mean = chance @ points
    assert found.score_to_play == pytest.approx(mean, abs=1e-4)
    assert found.lead_to_play is None
    variance = chance @ points**2 - mean**2
    assert found.score_stdev == pytest.approx(np.sqrt(variance), rel=1e-4)


def test_the_lead_is_that_of_its_head(run, tmp_path):
    """If the network has a lead head, its output is used, not the score's."""
    model = run.models.entry(0)
    copy = shutil.copytree(model, tmp_path / "model")
    head = load_head(model).head.net
    grown = head.grown(dataclasses.replace(head.config, lead=True))
    save_file(grown.state_dict(), copy / "weights.safetensors")
    meta = json.loads((copy / "meta.json").read_text())
    meta["net"]["lead"] = True
    (copy / "meta.json").write_text(json.dumps(meta))
    game = games.make("go/5")
    found = Forecaster(copy).forecast(Framed(game, game), MOVES)
    leads = []
    for symmetry in range(8):
        state = game.new_state()
        for move in turned(MOVES, symmetry):
            state.apply(move)
        with torch.no_grad():
            said = grown.learn(torch.from_numpy(state.observation())[None])[2]
        leads.append(float(said.lead))
    assert found.lead_to_play == pytest.approx(np.mean(leads), abs=1e-4)


def test_one_answer_is_kept_until_another_position(run):
    forecaster = Forecaster(run.models.entry(0))
    game, other = games.make("go/5"), games.make("go/5/komi=0.5")
    first = forecaster.forecast(Framed(game, game), MOVES)
    assert forecaster.forecast(Framed(game, game), list(MOVES)) is first
    assert forecaster.forecast(Framed(game, game), MOVES[:4]) is not first
    assert (
        forecaster.forecast(Framed(other, other), MOVES).score_to_play
        != first.score_to_play
    )


def test_players_with_and_without_such_heads(run, tmp_path, publish_run, make_player):
    with load(run.path) as player:
        found = player.forecast(MOVES)
        assert np.abs(found.ownership_to_play).max() <= 1
        other = player.playing("go/5/komi=0.5")
        assert other.forecast(MOVES).score_to_play != found.score_to_play
    plain = publish_run(tmp_path / "plain", "go/5", exports=False)
    with load(plain.path) as player:
        assert player.forecast(MOVES) is None
    scoreless = publish_run(
        tmp_path / "ttt", "tictactoe", auxiliary=True, exports=False
    )
    with load(scoreless.path) as player:
        assert player.forecast([4]) is None
    assert make_player("go/5").forecast(MOVES) is None


@pytest.mark.parametrize("board", ["4", "3x5", "5x3"])
def test_a_smaller_board_in_the_corner_of_the_planes(tmp_path, publish_run, board):
    """Averages over the symmetries of the small board, cut out of the planes."""
    run = publish_run(
        tmp_path / "go", "go/5", auxiliary=True, mixed_sizes=True, exports=False
    )
    net, small = load_head(run.models.entry(0)).head.net, games.make(f"go/{board}")
    height, width, moves = small.height, small.width, [1, 5, 7, 2]
    owners, score = np.zeros(height * width), []
    for symmetry in range(small.num_symmetries):
        state = games.make("go/5").new_state(small.name)
        for move in moves:
            row, column = divmod(small.transform_action(move, symmetry), width)
            state.apply(row * 5 + column)
        with torch.no_grad():
            said = net.learn(torch.from_numpy(state.observation())[None])[2]
        corner = torch.tanh(said.ownership[0] / 2).reshape(5, 5)[:height, :width]
        for cell in range(height * width):
            image = small.transform_action(cell, symmetry)
            owners[cell] += corner.flatten()[image] / small.num_symmetries
        score.append(torch.softmax(said.score[0], 0).double().numpy())
    with load(run.path) as player:
        found = player.playing(small.name).forecast(moves)
    assert found.ownership_to_play.shape == (height, width)
    assert found.ownership_to_play.ravel() == pytest.approx(owners, abs=1e-5)
    points = np.arange(2 * 45) - 45 + 0.5
    assert found.score_to_play == pytest.approx(np.mean(score, 0) @ points, abs=1e-4)
