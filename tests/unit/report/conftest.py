"""Runs as files alone, of games and of environments."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

from tengen.evaluation import MatchRecord, games_jsonl, publish_record
from tengen.evaluation.played_game import PlayedGame
from tengen.run import publish_file
from tests.unit.observe.curves.curve_events import acted, learned, make_run

WON = (4, 0, 8, 1, 2, 3, 5)
DRAWN = (4, 0, 8, 2, 1, 7, 6, 5, 3)
LOST = (0, 4, 1, 2, 8, 6)


class Page(HTMLParser):
    """What is in the file of a report: its elements, and the data of its script."""

    def __init__(self, path):
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.policy = ""
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._tag = ""
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        content = json.loads(self.scripts[0])
        self.answers, self.report = content["answers"], content["report"]
        self.run = self.answers["/api/runs/run"]

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._tag = tag
        self.attributes |= {name for name, _ in attrs}
        if ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = str(dict(attrs)["content"])

    def handle_endtag(self, tag):
        self._tag = ""

    def handle_data(self, data):
        if self._tag == "script":
            self.scripts.append(data)
        if self._tag == "style":
            self.styles.append(data)

    @property
    def games(self):
        """The games, in the order of the list."""
        base = "/api/runs/run/games/run"
        rows = self.answers[base]["games"] if base in self.answers else []
        return [self.answers[f"{base}/{row['index']}"] for row in rows]


def put_events(run, *events):
    lines = "".join(json.dumps(event) + "\n" for event in events)
    (run.events / "train-1.jsonl").write_text(lines)


def match_of(run, name, a, b, **fields):
    record = MatchRecord(
        task="tictactoe",
        a=a,
        b=b,
        wins_a=9,
        draws=2,
        wins_b=5,
        num_simulations=64,
        opening_plies=2,
        seed=1,
        **fields,
    )
    return publish_record(run, name, record)


def keep_games(run, name, *games):
    played = [
        PlayedGame(i, i % 2 == 0, moves, 0, score)
        for i, (moves, score) in enumerate(games)
    ]
    publish_file(run.games / f"{name}.jsonl", games_jsonl(played))


@pytest.fixture
def game_run(tmp_path):
    """A run of tic-tac-toe with two rated models and a closing match."""
    run = make_run(tmp_path / "run", ("selfplay", "learn", "rate"), task="tictactoe")
    run.write_run({**run.read_run(), "config": {"task": "tictactoe", "seed": 3}})
    told = []
    for i in range(1, 6):
        table = {"num_games": 24 * i, "num_rows": 150 * i}
        told.append(learned(100.0 + 2 * i, 0, 40 * i, loss=2.0 / i, table=table))
        rated = {"kind": "turn", "role": "rate", "rating": 100.0 * i}
        told.append({"time_s": 101.0 + 2 * i, **rated, "rating_error": 80.0 / i})
    progress = {"kind": "progress", "generation": 5, "elapsed_s": 11.0}
    progress["verdict"] = "self-play 90%: more cores"
    put_events(run, *told, {"time_s": 112.0, **progress, "num_games": 120})
    run.write_code()
    match_of(run, "000001", "000001", "random")
    match_of(run, "000004", "000004", "mcts:30")
    match_of(run, "final", "000004", "mcts:1000")
    keep_games(run, "final-1", (WON, 1.0), (WON, 0.0), (DRAWN, 0.5), (LOST, 0.0))
    return run


@pytest.fixture
def environment_run(tmp_path):
    """A run of an environment that learned for six turns."""
    run = make_run(tmp_path / "run", ("actor", "learn"), agent={"kind": "ppo"})
    told = []
    for i in range(1, 7):
        told.append(acted(100.0 + 2 * i, 10.0 * i, mean_length=5.0, frames_per_step=4))
        told.append(learned(101.0 + 2 * i, 500 * i, 40 * i))
    put_events(run, *told)
    return run


@pytest.fixture
def page_of():
    """Reads the file of a report."""
    return Page
