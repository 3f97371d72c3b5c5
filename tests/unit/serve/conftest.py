"""Runs for a server to show: games of four kinds, and an environment."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.serve.chromium import Chromium, find_chromium
from tests.unit.serve.made_runs import (
    add_experience,
    add_matches,
    make_environment_run,
    write_events,
)
from tests.unit.serve.served import serving

TASKS = ("tictactoe", "connect4", "gomoku/7", "go/5")


@pytest.fixture(scope="package")
def shelf(tmp_path_factory, publish_run):
    """Returns ``folder`` and ``runs``, which tests must not change."""
    folder = tmp_path_factory.mktemp("runs")
    runs = {}
    for task in TASKS:
        run = publish_run(folder / task, task, numbers=(0, 3), exports=False)
        run.write_run({"config": {"task": task, "seed": 1}})
        write_events(run, range(1, 6)).close()
        add_experience(run, task)
        add_matches(run, task)
        runs[task] = run
    for seed in (1, 2):
        name = f"CartPole-v1/seed{seed}"
        runs[name] = make_environment_run(folder / name, seed)
    return SimpleNamespace(folder=folder, runs=runs)


@pytest.fixture(scope="package")
def site(shelf):
    """Returns a local server of all these runs, without a token."""
    pytest.importorskip("starlette", reason="the extra serve is not installed")
    pytest.importorskip("uvicorn", reason="the extra serve is not installed")
    with serving([], folder=Path(shelf.folder)) as site:
        yield site


@pytest.fixture(scope="package")
def browser():
    """Returns the browser shared by all tests."""
    pytest.importorskip("starlette", reason="the extra serve is not installed")
    pytest.importorskip("uvicorn", reason="the extra serve is not installed")
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium is installed; apt-get install chromium")
    browser = Chromium(program)
    yield browser
    browser.close()


@pytest.fixture
def page(browser):
    """Returns a page; at teardown asserts no errors and no requests to other hosts."""
    page = browser.page()
    yield page
    page.leave()  # otherwise it would poll its server during other tests
    assert page.errors == []
    own = ("http://127.0.0.1:", "blob:", "data:", "about:")
    assert [url for url in page.requests if not url.startswith(own)] == []
