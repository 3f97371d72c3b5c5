import io
import json
import shutil
from pathlib import Path

import pytest

from tengen import _core
from tengen.errors import RunError, UsageError
from tengen.launch.child import _tell
from tengen.launch.process import RoleProcess
from tengen.recipes import make_config
from tengen.roles import write_config
from tengen.run import RunDirectory

DETAILS = {"remaining": None, "spent": None, "sealed": 0}


@pytest.fixture
def run(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, make_config("tictactoe", None, None))
    return run


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UsageError("a (1) is bad; mend it"), 2, "a (1) is bad; mend it"),
        (_core.CoreError("b (2) is bad; mend it"), 1, "b (2) is bad; mend it"),
        (_core.SchemaError("c (3) is newer; update"), 2, "c (3) is newer; update"),
        (
            FileNotFoundError(2, "No such file or directory", "/x"),
            1,
            "file (/x) cannot be used, no such file or directory; check it",
        ),
        (
            KeyError("k"),
            1,
            "role (learn) failed by a bug, KeyError 'k'; report it with the traceback "
            "in the run's logs",
        ),
    ],
)
def test_the_last_words_of_a_child(error, code, line):
    stream = io.BytesIO()
    assert _tell(stream, error, "learn") == code
    assert json.loads(stream.getvalue()) == {"error": line, "exit_code": code}


def turn(process, deaths=None):
    def on_death(role, how):
        assert deaths is not None, how
        deaths.append((role, how))

    return process.turn("gate", lambda report: None, on_death, DETAILS)


def test_a_child_that_dies_is_told_of_and_started_again(run, monkeypatch):
    monkeypatch.setattr("tengen.launch.process._FIRST_BACKOFF_S", 0.0)
    process = RoleProcess(run, ("gate",), 1)
    assert turn(process) is None
    process._child.kill()
    deaths = []
    assert turn(process, deaths) is None
    assert deaths == [("gate", "signal 9")]
    process.close()


def test_an_error_arrives_though_the_log_is_full(run):
    if not Path("/dev/full").exists():
        pytest.skip("a full disk is made of /dev/full")
    run.candidates.entry(0).mkdir(parents=True)
    (run.logs / "gate.log").symlink_to("/dev/full")
    process = RoleProcess(run, ("gate",), 1)
    with pytest.raises(RunError, match=r"^meta\.json \(.*000000/meta\.json\)"):
        turn(process)
    process.close()


def test_a_child_that_cannot_begin_says_why(run):
    shutil.rmtree(run.logs)
    run.logs.touch()
    process = RoleProcess(run, ("gate",), 1)
    with pytest.raises(
        RunError, match=r"^file \(.*logs/gate\.log\) cannot be used, not"
    ):
        turn(process)
    process.close()


def test_a_role_that_another_process_has_is_a_usage_error(run):
    process = RoleProcess(run, ("gate",), 1)
    with run.lock("gate"), pytest.raises(UsageError, match="is in use by process"):
        turn(process)
    process.close()
