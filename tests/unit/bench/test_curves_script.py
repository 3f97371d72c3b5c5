"""The script that draws curves of several seeds and tables of their means."""

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def script(load_script):
    return load_script("learning/curves")


def curve_file(path, *rows):
    lines = ["agent_steps,return_mean", *(f"{x},{y}" for x, y in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        ([5.0], 5.0),
        ([1.0, 2.0, 9.0], 4.0),  # of three none is left out
        ([-100.0, 2.0, 4.0, 100.0], 3.0),
        ([0.0, 3.0, 4.0, 5.0, 1000.0], 4.0),  # floor(5 / 4) on either side
        ([8, 7, 6, 5, 4, 3, 2, 1], 4.5),
        ([float("nan"), 2.0, -100.0, 100.0, 4.0], 3.0),
    ],
)
def test_the_interquartile_mean_leaves_a_quarter_out_on_either_side(
    script, values, mean
):
    assert float(script.interquartile_mean(values)) == mean


def test_the_interquartile_mean_is_of_seeds(script):
    nan = np.nan
    values = [[1.0, nan, 0.0], [2.0, nan, nan], [3.0, nan, 4.0], [50.0, nan, nan]]
    found = script.interquartile_mean(values)
    np.testing.assert_array_equal(found, [2.5, nan, 2.0])


def test_a_value_is_the_last_one_reached(script):
    curve = np.array([100.0, 200.0, 1000.0]), np.array([1.0, 2.0, 3.0])
    found = script.values_at(curve, [99, 100, 199, 200, 1000, 1015, 1021])
    nan = np.nan
    np.testing.assert_array_equal(found, [nan, 1.0, 1.0, 2.0, 3.0, 3.0, nan])


def test_the_table_has_means_and_ranges(script, tmp_path, capsys):
    seeds = [
        str(curve_file(tmp_path / f"{i}.csv", (500, ""), (1000, str(y)), (2000, "9")))
        for i, y in enumerate((-100, 2, 4, 100))
    ]
    other = curve_file(tmp_path / "other.csv", (1000, "7"))
    words = ["--group", "ppo", *seeds, "--group", "dqn", str(other)]
    assert script.main([*words, "--at", "1k,2k"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "| agent_steps | 1,000 | 2,000 |",
        "|---|---|---|",
        "| ppo | 3 (-100 to 100, n = 4) | 9 (9 to 9, n = 4) |",
        "| dqn | 7 (7 to 7, n = 1) | - |",
    ]


def test_curves_are_drawn(script, tmp_path):
    pytest.importorskip("matplotlib")
    seed = curve_file(tmp_path / "a.csv", (1000, "7"), (2000, "8"))
    png = tmp_path / "a.png"
    assert script.main(["--group", "ppo", str(seed), "--png", str(png)]) == 0
    assert png.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["absent.csv"], "is not there"),
        (["bytes.csv"], "is no table with columns agent_steps and return_mean"),
        (["columns.csv"], "is no table with columns agent_steps and return_mean"),
        (["words.csv"], "is no table with columns agent_steps and return_mean"),
        (["empty.csv"], "has no return_mean by agent_steps"),
        ([], "must have seeds"),
        (["good.csv", "--at", "1x"], "must be numbers"),
        (["good.csv", "--at", ""], "must be numbers"),
    ],
)
def test_bad_usage_is_one_line(script, tmp_path, monkeypatch, capsys, words, told):
    monkeypatch.chdir(tmp_path)
    Path("bytes.csv").write_bytes(b"\x89PNG\x00\xff")
    Path("columns.csv").write_text("a,b\n1,2\n")
    curve_file(Path("words.csv"), (1, "many"))
    curve_file(Path("empty.csv"), (1, ""))
    curve_file(Path("good.csv"), (1, "2"))
    assert script.main(["--group", "ppo", *words]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
