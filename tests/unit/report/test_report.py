"""``tengen report``: one page of a run's files, whatever is in them."""

import base64
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tengen.cli import main
from tengen.errors import DiskFullError
from tengen.evaluation.played_game import PlayedGame, write_games
from tengen.report import write_report
from tengen.run import publish_directory
from tests.unit.conftest import fill
from tests.unit.observe.curves.curve_events import learned, make_run
from tests.unit.report.conftest import LOST, WON, keep_games, put_events
from tests.unit.serve.chromium import Chromium, find_chromium

EXAMPLES = Path(__file__).parents[3] / "examples"


def told(capsys, *words):
    """Runs the command; returns its exit code, JSON report and errors."""
    code = main(["report", *map(str, words), "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def test_a_run_of_games(game_run, page_of, capsys):
    code, report, err = told(capsys, game_run.path)
    assert (code, report["missing"], err) == (0, [], "")
    path = game_run.path / "report.html"
    assert report["html"] == str(path)
    page = page_of(path)
    verdict = page.run["run"]["status"]["progress"]["verdict"]
    assert verdict == "self-play 90%: more cores"
    rating = page.run["curves"]["charts/rating"]["value"]
    assert rating == [100.0, 200.0, 300.0, 400.0, 500.0]
    titles = [(game["title"], game["result"]) for game in page.games]
    assert titles == [
        ("000004 against mcts:1000", 1.0),
        ("mcts:1000 against 000004", 1.0),
        ("000004 against mcts:1000", 0.0),
        ("mcts:1000 against 000004", 1.0),
    ]
    assert page.games[0]["moves"] == list(WON)
    assert len(page.games[0]["positions"]) == len(WON) + 1
    rows = page.report["ratings"]["rows"]
    assert [(row[0], row[3]) for row in rows] == [("000001", 16), ("000004", 32)]
    assert page.report["made"].startswith(f"Made by tengen report {game_run.path}, ")
    assert page.report["code"] == (game_run.path / "code.txt").read_text().strip()


def test_nothing_is_fetched_and_only_the_page_itself_runs(game_run, page_of):
    page = page_of(write_report(game_run.path).path)
    assert not {"src", "href", "srcset", "data", "xlink:href"} & page.attributes
    assert not [name for name in page.attributes if name.startswith("on")]
    script = page.scripts[1]
    (style,) = page.styles
    assert "@import" not in style
    assert "url(" not in style
    allowed = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (script, style)
    ]
    assert page.policy == (
        f"default-src 'none'; script-src 'sha256-{allowed[0]}'; "
        f"style-src 'sha256-{allowed[1]}'; base-uri 'none'; form-action 'none'"
    )


def test_a_run_of_an_environment(environment_run, page_of, tmp_path):
    made = write_report(environment_run.path, tmp_path / "page.html")
    assert made.path == tmp_path / "page.html"
    assert made.missing == ()
    assert made.num_bytes == made.path.stat().st_size
    page = page_of(made.path)
    assert page.run["in_environments"]
    assert page.run["curves"]["charts/episodic_return"]["value"][-1] == 60.0
    assert "Episodes of environments are not kept" in page.report["notes"][0]
    assert page.games == []
    assert not (environment_run.path / "report.html").exists()


def test_a_run_that_has_only_begun(tmp_path, page_of):
    run = make_run(tmp_path / "run", ("selfplay", "learn"))
    run.write_run({**run.read_run(), "config": {"task": "tictactoe"}})
    made = write_report(run.path)
    assert made.missing == ()
    page = page_of(made.path)
    assert page.run["curves"] == {}
    assert page.answers["/api/runs/run/games"] == []
    assert page.report["notes"] == [
        "No model is rated yet.",
        "It has not been trained yet.",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="names of files there are fewer")
def test_whatever_files_say_stays_text(game_run, tmp_path, page_of):
    harm = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\ud800"
    name = 'run"><script>alert(1)<|script>'
    plain = page_of(write_report(game_run.path).path)
    run = make_run(tmp_path / name, ("selfplay", "learn", harm), task="tictactoe")
    config = {"task": "tictactoe", harm: {harm: harm}}
    run.write_run({**run.read_run(), "config": config, "measured": {harm: [harm]}})
    (run.path / "code.txt").write_text(harm, errors="replace")
    progress = {"kind": "progress", "generation": 1, "elapsed_s": 1.0, "verdict": harm}
    gate = {"kind": "gate", "candidate": 1, "summary": harm}
    put_events(
        run,
        learned(100.0, 0, 40, **{harm: 1.0, "table": {"num_games": 3}}),
        {"time_s": 101.0, **progress, "stage": harm},
        {"time_s": 102.0, **gate},
    )
    keep_games(run, "final-1", (LOST, 1.0))
    made = write_report(run.path, made_by=harm)
    assert made.missing == ()
    page = page_of(made.path)
    assert page.tags == plain.tags
    assert page.attributes == plain.attributes
    assert page.run["config"][harm] == {harm: harm}
    assert page.run["run"]["status"]["gate"]["summary"] == harm


def test_what_is_damaged_is_told_and_the_rest_is_there(game_run, page_of, capsys):
    (game_run.eval / "000001-1.json").write_text("{")
    (game_run.games / "final-1.jsonl").write_text('{"moves": 3}\n')
    with open(game_run.events / "train-1.jsonl", "ab") as file:
        file.write(b'\xff\x00 no event\n{"kind": [], "time_s": 7}\n{"kind": "turn"')
    code, report, err = told(capsys, game_run.path)
    assert code == 1
    titles = [line.split(":")[0] for line in report["missing"]]
    assert titles == ["Games", "Ratings"]
    assert "000001-1.json) is damaged" in report["missing"][1]
    assert [line.split(":")[1] for line in err.splitlines()] == [
        " report lacks Games",
        " report lacks Ratings",
    ]
    page = page_of(game_run.path / "report.html")
    assert page.report["missing"] == report["missing"]
    assert page.answers["/api/runs/run/games"] == []
    assert len(page.run["curves"]["losses/loss"]["value"]) == 5


def test_illegal_moves_are_damage(game_run):
    keep_games(game_run, "final-2", ((4, 4), 1.0))
    (line,) = write_report(game_run.path).missing
    assert line.startswith("Games: move (4, number 2) is not legal")


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"schema": 3, "config": []}', b""])
def test_a_damaged_run_json_leaves_a_page_that_says_so(
    game_run, page_of, capsys, content
):
    (game_run.path / "run.json").write_bytes(content)
    code, report, _ = told(capsys, game_run.path)
    assert code == 1
    assert len(report["missing"]) == 3
    assert all("run.json" in line for line in report["missing"])
    page = page_of(game_run.path / "report.html")
    assert page.run == {"error": report["missing"][0]}
    assert "machine: " in page.report["code"]


@pytest.mark.parametrize(
    "config",
    [
        {"task": {}, "agent": []},
        {"agent": {"rating": 3, "play": "x"}, "launch": 7, "store": []},
        {"agent": {"learn_from": {}, "target": 3, "gate": 1}},
        {"task": "nope/9"},
    ],
)
def test_a_config_of_other_forms_is_no_traceback(game_run, page_of, config):
    game_run.write_run({"config": config, "roles": 3})
    made = write_report(game_run.path)
    assert made.missing
    assert all(len(line.splitlines()) == 1 for line in made.missing)
    page_of(made.path)


def test_what_is_no_run_is_one_line(tmp_path, game_run, capsys):
    (tmp_path / "file").write_text("x")
    (tmp_path / "new" / "run.json").mkdir(parents=True)
    for words in (
        [tmp_path],
        [tmp_path / "gone"],
        [tmp_path / "file"],
        [tmp_path / "new"],
        [game_run.path, "--out", tmp_path / "gone" / "page.html"],
        [game_run.path, "--out", tmp_path],
        [game_run.path, "--out", ""],
        [game_run.path, "--task", "own_game:Hex"],
    ):
        code, report, err = told(capsys, *words)
        assert (code, report) == (2, None)
        assert err.startswith("tengen: ")
        assert len(err.splitlines()) == 1
    (game_run.path / "mirror.json").write_text('{"schema": 1, "host": "far"}')
    code, _, err = told(capsys, game_run.path)
    assert code == 2
    assert "is a mirror of the run at far" in err
    (game_run.path / "mirror.json").unlink()
    game_run.write_run({"config": {}})
    content = json.loads((game_run.path / "run.json").read_text())
    (game_run.path / "run.json").write_text(json.dumps({**content, "schema": 99}))
    assert told(capsys, game_run.path)[0] == 2
    assert not (game_run.path / "report.html").exists()


def test_a_full_disk_leaves_the_old_page(game_run, small_disk):
    run = small_disk / "run"
    shutil.copytree(game_run.path, run)
    path = write_report(run).path
    old = path.read_bytes()
    before = set(os.listdir(run))
    fill(small_disk)
    with pytest.raises(DiskFullError):
        write_report(run, made_by="somebody else")
    assert path.read_bytes() == old
    assert set(os.listdir(run)) == before


def test_a_long_run_is_a_short_page(game_run, page_of):
    events = [
        learned(100.0 + i, 0, i, loss=1.0, table={"num_games": i})
        for i in range(1, 5_000)
    ]
    put_events(game_run, *events)
    config = {"task": "tictactoe", "many": {str(i): "x" * 1000 for i in range(3000)}}
    game_run.write_run({**game_run.read_run(), "config": config})
    (game_run.path / "code.txt").write_text("tengen: 0\n\n" * 100_000)
    long = [[move for _ in range(20_000) for move in (0, 80)]]
    keep_games(game_run, "final-1", *((moves, 1.0) for moves in long))
    made = write_report(game_run.path)
    assert made.num_bytes < 1_000_000
    assert page_of(made.path).games == []


def test_games_of_go_in_a_gate_are_shown(tmp_path, page_of):
    run = make_run(tmp_path / "run", ("selfplay", "learn"), task="go/5")
    run.write_run({**run.read_run(), "config": {"task": "go/5"}})
    games = [PlayedGame(0, False, (12, 6, 25, 25), 0, 1.0)]
    folder = run.games / "gate" / "000003"
    folder.parent.mkdir(parents=True)
    publish_directory(
        folder, lambda path: write_games(path, "go/5", "new", "old", games)
    )
    made = write_report(run.path)
    assert made.missing == ()
    (game,) = page_of(made.path).games
    assert game["moves"] == [12, 6, 25, 25]
    assert game["title"] == "the model before against the candidate"


def test_a_program_is_imported_only_where_it_is_typed(tmp_path, page_of, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sys.modules.pop("own_game", None)
    run = make_run(tmp_path / "run", ("selfplay", "learn"))
    run.write_run({**run.read_run(), "config": {"task": "own_game:Hex"}})
    keep_games(run, "final-1", ((0, 5, 1), 1.0))
    page = page_of(write_report(run.path).path)
    assert "own_game" not in sys.modules
    assert page.games == []
    told = "The game is in Python; add --task own_game:Hex to show games."
    assert told in page.report["notes"]
    made = write_report(run.path, task="own_game:Hex")
    assert made.missing == ()
    assert page_of(made.path).games[0]["moves"] == [0, 5, 1]


@pytest.mark.slow
def test_a_browser_opens_the_file_without_a_server(game_run):
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium is installed; apt-get install chromium")
    browser = Chromium(program)
    try:
        page = browser.page()
        page.open(write_report(game_run.path).path.as_uri())
        page.wait("document.querySelectorAll('.chart canvas').length >= 2")
        shown = page.run("document.body.innerText")
        assert "self-play 90%: more cores" in shown
        assert "Elo of models at" in shown
        page.click("a[href='#/runs/run/games']")
        page.wait("document.querySelector('.play-board') !== null")
        assert "000004 against mcts:1000" in page.run("document.body.innerText")
        assert page.run("location.hash") == "#/runs/run/games"
        page.run("history.back()")
        page.wait("document.querySelectorAll('.chart canvas').length >= 2")
        assert page.errors == []
        assert {url.partition(":")[0] for url in page.requests} <= {"file", "data"}
    finally:
        browser.close()
