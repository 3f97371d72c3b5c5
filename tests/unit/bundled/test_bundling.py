"""Making a bundled player from a run."""

import json

import numpy as np
import pytest
from scripts.bundle_player import bundle, half_graph, halved

from tengen import bundled, load
from tengen.models import resolve_model
from tengen.models.load import read_weights
from tests.refusals import refused
from tests.unit.inference.test_native_backend import publish


@pytest.mark.slow
def test_a_run_becomes_a_player(tmp_path, bundled_in, publish_run):
    run = publish_run(tmp_path / "run", "tictactoe")
    run.write_run({"config": {"task": "tictactoe", "recipe": "tictactoe"}})
    (run.path / "code.txt").write_text("tengen: 0.1.0\ncommit: abc\n")
    (run.path / "events").mkdir(exist_ok=True)
    for number, seconds in ((1, (2.0, 3.5)), (2, (1.0,))):
        lines = [json.dumps({"kind": "progress", "cpu_s": s}) for s in seconds]
        path = run.path / "events" / f"train-{number}.jsonl"
        path.write_text("\n".join([*lines, "{}"]) + "\n")
    folder = tmp_path / "players"
    bundle(run.path, "tengen train tictactoe --minutes 1", folder)
    bundled_in(folder)
    told = bundled.read_manifest("tictactoe")
    assert (told.commit, told.cpu_seconds, told.net) == ("abc", 4.5, "2x8")
    whole, half = (
        read_weights(path)
        for path in (
            resolve_model(run.path).path,
            resolve_model("bundled:tictactoe").path,
        )
    )
    assert whole.keys() == half.keys()
    for name, tensor in half.items():
        assert tensor.dtype == whole[name].dtype
        np.testing.assert_allclose(tensor, whole[name], rtol=1e-3, atol=1e-6)
    files = [path.stat().st_size for path in (folder / "tictactoe").iterdir()]
    sizes = [path.stat().st_size for path in resolve_model(run.path).path.iterdir()]
    assert sum(files) < 0.75 * sum(sizes)
    with (
        load("bundled:tictactoe") as player,
        load(run.path) as trained,
    ):
        found, known = player.analyse([4, 0]), trained.analyse([4, 0])
        assert abs(found.network_value_to_play - known.network_value_to_play) < 0.01


def test_a_network_that_the_core_evaluates(tmp_path, bundled_in):
    run = publish(tmp_path / "run", "gomoku/6")
    run.write_run({"config": {"task": "gomoku/6", "recipe": "gomoku"}})
    (run.path / "code.txt").write_text("commit: abc\n")
    (run.path / "events").mkdir(exist_ok=True)
    folder = tmp_path / "players"
    bundle(run.path, "tengen train gomoku/6 --minutes 1", folder)
    bundled_in(folder)
    assert bundled.read_manifest("gomoku/6").net == "lines 48"
    with load("bundled:gomoku/6") as player:
        assert len(player.analyse([24]).actions) == 35


def test_another_game_is_refused_and_the_player_before_stays(tmp_path, publish_run):
    run = publish_run(tmp_path / "run", "tictactoe", exports=False)
    before = tmp_path / "players" / "tictactoe" / "player.json"
    before.parent.mkdir(parents=True)
    before.touch()
    with refused(AssertionError, "connect4"):
        bundle(run.path, "tengen train connect4 --minutes 1", tmp_path / "players")
    assert before.exists()


def test_a_weight_beyond_half_precision_is_refused():
    with refused(AssertionError, "half"):
        halved(np.array([1e6], np.float32))
    assert halved(np.array([7], np.int64)).dtype == np.int64


def test_a_graph_without_floats_stays():
    import onnx

    graph = onnx.helper.make_graph([], "empty", [], [])
    data = onnx.helper.make_model(graph).SerializeToString()
    assert onnx.load_model_from_string(half_graph(data)).graph.name == "empty"
