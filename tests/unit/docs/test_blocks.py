"""Every Python block of a page runs, or says in its first line why it does not.

A page's blocks run in order, as if a reader pasted them, in a folder with small runs
of the tasks that pages name.
"""

import inspect
import re
from pathlib import Path

import pytest

import tengen
from tengen.api import train as real_train
from tengen.models import ModelMeta, publish_model
from tengen.recipes import make_config
from tengen.roles import write_config
from tengen.run import RunDirectory
from tests.unit.docs.pages import PAGES, ROOT, blocks_of, name_of
from tests.unit.observe.curves.curve_events import learned
from tests.unit.report.conftest import put_events

NOT_RUN = "# Not run by the tests: "
# Pages whose blocks are run by another test.
RUN_BY = {
    "docs/adding/launcher.md": "tests/unit/launch/test_documented_launcher.py",
    "docs/howto/play/data.md": "tests/unit/experience/games/test_tables.py",
    "docs/tutorials/own_agent.md": "tests/unit/agents/test_documented_agent.py",
    "docs/tutorials/own_environment.md": (
        "tests/unit/envs/test_documented_environment.py"
    ),
    "docs/tutorials/own_game.md": "tests/unit/games/test_documented_game.py",
    "docs/tutorials/own_network.md": "tests/unit/nets/test_documented_network.py",
}
TASKS = ("tictactoe", "connect4", "CartPole-v1")
GAME = b"(;GM[1]FF[4]SZ[9]KM[7.5];B[ee];W[cc])"


def python_blocks(page):
    return [block for block in blocks_of(page) if block.language == "python"]


WITH_BLOCKS = [
    page for page in PAGES if python_blocks(page) and name_of(page) not in RUN_BY
]


def publish(path, task):
    """Creates a run with one model of random weights."""
    config = make_config(task, None, None)
    run = RunDirectory.create_or_resume(path)
    write_config(run, config)
    signature = config.net.signature(config.agent.signature(task))
    state = config.net.build(signature).state_dict()
    meta = ModelMeta(
        task=task,
        agent=config.agent.kind,
        net=config.net,
        signature=signature,
        generation=1,
        num_steps=1,
        num_samples=0,
        sha256={},
    )
    tensors = {name: tensor.numpy() for name, tensor in state.items()}
    publish_model(run.models.entry(1), meta, tensors, None)
    table = {"num_games": 24, "num_rows": 150}
    put_events(run, learned(100.0, 0, 40, table=table))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    pytest.importorskip("gymnasium")
    folder = tmp_path_factory.mktemp("runs")
    for task in TASKS:
        publish(folder / "runs" / task, task)
    (folder / "game.sgf").write_bytes(GAME)
    return folder


def trained_already(*args, **kwargs):
    """Replaces ``train``: returns the run that the fixture has created."""
    call = inspect.signature(real_train).bind(*args, **kwargs).arguments
    return tengen.Run(call["out"])


def test_other_tests_run_what_is_said_of_them():
    for page, test in RUN_BY.items():
        text = (ROOT / test).read_text()
        assert python_blocks(ROOT / page)
        assert Path(page).name in text
        assert re.search(r"\b(exec|write_text|install_page)\(", text)


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=name_of)
def test_it_runs(page, runs, monkeypatch):
    monkeypatch.chdir(runs)
    monkeypatch.setattr(tengen, "train", trained_already, raising=False)
    space = {"__name__": "page"}
    for block in python_blocks(page):
        if block.text.startswith(NOT_RUN):
            reason = block.text.splitlines()[0].removeprefix(NOT_RUN)
            assert len(reason) > 10
            continue
        code = "\n" * block.line + block.text
        exec(compile(code, str(page), "exec"), space)
