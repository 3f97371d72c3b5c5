"""``katago:FILE`` in every place where a model can be named."""

import json
from pathlib import Path

import numpy as np
import pytest
from katago_golden import golden_games

from tengen import load
from tengen.cli import main
from tengen.errors import UsageError
from tengen.evaluation.players import open_for_play
from tengen.games import make
from tengen.inference import allocate, search_outputs
from tengen.models import INT8_FILE, can_quantise, resolve_model
from tengen.play import Player
from tests.refusals import refused

FILE = Path(__file__).parents[2] / "golden" / "katago" / "tiny-v8.bin.gz"
WORD = f"katago:{FILE}"


def test_a_model_is_made_once_for_each_board(cache):
    model = resolve_model(WORD)
    assert model.meta.task == "go/19/planes=katago"
    assert model.boards is not None
    small = model.boards(4, 5)
    assert small.meta.task == "go/4x5/planes=katago"
    assert {"19", "4x5"} <= {path.name for path in model.path.parent.iterdir()}
    made = {path: path.stat().st_mtime_ns for path in cache.rglob("meta.json")}
    assert resolve_model(WORD).path == model.path
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("meta.json")} == made


def test_a_match_is_played_by_the_rules_of_the_other(capsys, tmp_path):
    words = ["match", WORD, "random", "--game", "go/4x5/simple/komi=2", "--games", "2"]
    words += ["--simulations", "4", "--threads", "1", "--json"]
    assert main([*words, "--keep", str(tmp_path / "games")]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["games"] == 2
    game = next((tmp_path / "games").iterdir()).read_text()
    assert "SZ[5:4]" in game
    assert "KM[2]" in game


def test_two_of_them_play_on_19_where_nobody_says_a_game(capsys):
    words = ["match", WORD, WORD, "--game", "connect4", "--games", "2"]
    assert main(words) == 2
    assert "connect4" in capsys.readouterr().err


def test_a_player_knows_every_board_and_what_will_be_whose():
    player = load(WORD)
    assert isinstance(player, Player)
    game, moves = make("go/5/nosuicide"), [12, 6, 18]
    state = game.new_state()
    for action in moves:
        state.apply(action)
    with player.playing(game.name) as small:
        assert small.choose(moves, simulations=4, seed=0) in state.legal_actions()
        forecast = small.forecast(moves)
    assert forecast.lead_to_play is not None
    assert forecast.ownership_to_play.shape == (5, 5)
    assert np.abs(forecast.ownership_to_play).max() <= 1


def test_what_plays_answers_as_katago_does():
    """Covers the planes of the game and the graph of the cached model."""
    golden = next(game for game in golden_games() if game.game == "go/9")
    boards = resolve_model(WORD).boards
    assert boards is not None
    model = boards(9, 9)
    backend = open_for_play(model.path, 1, outputs=search_outputs(scores=True))
    num_rows = len(golden.plies)
    inputs = allocate(backend.signature.inputs, num_rows)
    outputs = allocate(backend.signature.outputs, num_rows)
    state = make(model.meta.task).new_state()
    for row, ply in enumerate(golden.plies):
        for action in golden.moves[golden.plies[row - 1] if row else 0 : ply]:
            state.apply(action)
        inputs["planes"][row] = state.observation()
    backend.bind(inputs, outputs).run(num_rows)
    wanted = golden.answers["tiny-v8"]
    value = wanted.outcome[:, 0] - wanted.outcome[:, 1]
    np.testing.assert_allclose(outputs["value"], value, atol=1e-4)
    np.testing.assert_allclose(outputs["score"][:, 0], wanted.score, atol=2e-3)
    legal = wanted.policy >= 0
    shares = np.where(legal, np.exp(outputs["policy"]), 0)
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, wanted.policy * legal, atol=1e-4)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("katago:net.onnx", "must be a file"),
        ("katago:none.bin.gz", "none.bin.gz) cannot be read"),
    ],
)
def test_a_wrong_file_is_one_line(word, said):
    with refused(UsageError, said):
        resolve_model(word)


def test_damage_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "cut.bin.gz"
    path.write_bytes(FILE.read_bytes()[:-100])
    with refused(UsageError, str(path), "damaged"):
        resolve_model(f"katago:{path}")
    assert list(tmp_path.iterdir()) == [path]


def test_it_plays_in_int8_where_the_cpu_does():
    model = resolve_model(WORD)
    assert (INT8_FILE in model.meta.sha256) == can_quantise()
    assert model.boards is not None
    # A board of six points has too few positions for calibration.
    assert INT8_FILE not in model.boards(2, 3).meta.sha256
    found = []
    for precision in ("fp32", "int8"):
        backend = open_for_play(model.path, 1, precision=precision)
        assert not can_quantise() or backend.precision == precision
        inputs = allocate(backend.signature.inputs, 1)
        outputs = allocate(backend.signature.outputs, 1)
        inputs["planes"][0] = make(model.meta.task).new_state().observation()
        backend.bind(inputs, outputs).run(1)
        found.append(float(outputs["value"][0]))
    assert found[1] == pytest.approx(found[0], abs=0.1)
