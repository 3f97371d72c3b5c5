"""``tengen data import-minigo`` on the files that TensorFlow wrote."""

import json
import shutil

import numpy as np
import pytest

from tengen.cli import main
from tengen.experience.rows.imported import ImportedRows
from tengen.inference import InferenceConfig, open_backend
from tengen.models import resolve_model
from tengen.models.check import evaluate
from tests.unit.conftest import remount
from tests.unit.minigo.golden import GOLDEN, GRAPH, PREFIX, TASK, expected


def run(capsys, *words):
    code = main(["data", "import-minigo", *map(str, words)])
    return code, *capsys.readouterr()


def report(capsys, *words):
    code, out, _ = run(capsys, *words, "--json")
    assert code == 0
    return json.loads(out.splitlines()[-1])


@pytest.mark.parametrize(
    ("option", "path", "num_steps"),
    [("--checkpoint", PREFIX, 12345), ("--graph", GRAPH, 0)],
)
def test_a_model_answers_what_tensorflow_answers(
    option, path, num_steps, tmp_path, capsys
):
    out = tmp_path / "deep" / "model"
    assert report(capsys, option, path, "--out", out) == {
        "out": str(out),
        "task": TASK,
        "net": "2x8",
        "num_steps": num_steps,
    }
    model = resolve_model(out)
    assert model.meta.task == TASK
    assert model.meta.num_steps == num_steps
    wanted = expected()
    given = wanted["network_planes"]
    planes = np.concatenate([np.ones_like(given[:, :1]), given], 1).astype(np.float32)
    turn = 2.0 * given[:, 8, 0, 0] - 1.0
    for backend in ("torch", "openvino"):
        config = InferenceConfig(
            backend=backend,
            precision="fp32",
            batch_shape="dynamic",
        )
        found = evaluate(open_backend(out, config, num_threads=1), {"planes": planes})
        np.testing.assert_allclose(
            found["policy"], wanted["network_policy_logits"], rtol=0, atol=1e-4
        )
        np.testing.assert_allclose(
            found["value"] * turn, wanted["network_value"], rtol=0, atol=1e-4
        )


def test_a_model_plays(tmp_path, capsys):
    report(capsys, "--checkpoint", PREFIX, "--out", tmp_path / "m")
    words = ("--games", "2", "--simulations", "2", "--json")
    assert main(["match", str(tmp_path / "m"), "random", *words]) == 0
    played = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert played["games"] == 2


def test_examples_become_a_file_a_generation(tmp_path, capsys):
    words = ("--examples", GOLDEN / "selfplay", "--out", tmp_path / "rows")
    code, out, _ = run(capsys, *words)
    assert (code, out) == (0, "000003: 2 games, 7 rows\n000004: 2 games, 2 rows\n")
    assert report(capsys, *words) == {
        "out": str(tmp_path / "rows"),
        "generations": [3, 4],
        "num_games": 4,
        "num_rows": 9,
    }
    assert ImportedRows(tmp_path / "rows" / "000004.rows.npz").num_rows == 2
    words = ("--examples", GOLDEN / "nhwc", "--out", tmp_path / "early")
    assert report(capsys, *words, "--layout", "nhwc")["generations"] == [9]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--out", "x"], 2, "arguments (one of the arguments --checkpoint"),
        (["--checkpoint", "a", "--graph", "b", "--out", "x"], 2, "not allowed with"),
        (["--checkpoint", PREFIX], 2, "required: --out"),
        (["--checkpoint", PREFIX, "--out", GOLDEN], 2, "must be new; choose another"),
        (
            ["--checkpoint", "none", "--out", "x"],
            2,
            "checkpoint (none) must be a path without .index, and none.index is no",
        ),
        (["--checkpoint", f"{PREFIX}.index", "--out", "x"], 2, ".index.index is no"),
        (["--graph", "none.pb", "--out", "x"], 2, "graph (none.pb) must name a file"),
        (["--graph", GOLDEN, "--out", "x"], 2, "must name a file; check the path"),
        (["--graph", GRAPH, "--out", GRAPH / "x"], 2, "frozen.pb is not one; choose"),
        (
            ["--examples", GOLDEN / "selfplay", "--out", GRAPH],
            2,
            "must be in a folder, and",
        ),
        (["--graph", __file__, "--out", "x"], 2, "is damaged or not supported"),
        (["--examples", "none", "--out", "x"], 2, "examples (none) must be a folder"),
        (
            ["--examples", GOLDEN / "nhwc", "--out", "x"],
            1,
            "is not supported, the side to move differs between points; try --layout "
            "nhwc",
        ),
    ],
)
def test_what_cannot_be_imported_is_one_line(
    words, code, told, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    found, out, err = run(capsys, *words)
    assert (found, out) == (code, "")
    assert err.startswith("tengen: ")
    assert err.count("\n") == 1
    assert told in err
    assert not list(tmp_path.rglob("*.npz")) + list(tmp_path.rglob("*.json"))
    assert code == 1 or not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--checkpoint", "--examples"])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_read(
    option, small_disk, capsys
):
    remount(small_disk)
    path = PREFIX if option == "--checkpoint" else GOLDEN / "selfplay"
    code, out, err = run(capsys, option, path, "--out", small_disk / "x")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "cannot be written, it is mounted read-only" in err
    assert not list(small_disk.iterdir())


def test_a_checkpoint_without_its_numbers_is_damaged(tmp_path, capsys):
    shutil.copy(f"{PREFIX}.index", tmp_path)
    words = ("--checkpoint", tmp_path / PREFIX.name, "--out", tmp_path / "x")
    code, _, err = run(capsys, *words)
    assert code == 2
    assert "data-00000-of-00001) cannot be read, no such file" in err
    assert not (tmp_path / "x").exists()
