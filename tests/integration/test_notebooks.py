"""The example notebooks are stored without outputs, and their cells run in order."""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted(Path(__file__).parents[2].glob("examples/notebooks/*.ipynb"))


def cells_of(path):
    return list(json.loads(path.read_text())["cells"])


def run_cell(source, space):
    """Runs a cell; returns the value of its last expression, as a notebook does."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), space)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), space)


def test_both_families_have_one():
    assert [path.stem for path in NOTEBOOKS] == ["environments", "games"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stripped(path):
    content = json.loads(path.read_text())
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    cells = content["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in code)
    assert all(cell["execution_count"] is None for cell in code)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path, tmp_path, monkeypatch, capsys):
    if path.stem == "environments":
        pytest.importorskip("gymnasium")
    monkeypatch.chdir(tmp_path)
    space = {}
    drawn = 0
    for cell in cells_of(path):
        if cell["cell_type"] != "code":
            continue
        value = run_cell("".join(cell["source"]), space)
        if hasattr(value, "_repr_html_"):
            drawn += value._repr_html_().count("<svg")
    assert drawn >= (3 if path.stem == "environments" else 5)
    if path.stem == "environments":
        assert (tmp_path / "cartpole.onnx").stat().st_size > 0
        assert space["score"] > 0
