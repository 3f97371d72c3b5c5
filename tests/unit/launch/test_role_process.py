import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tengen import _core
from tengen.errors import EnvError, RunError, UsageError
from tengen.launch.child import _tell
from tengen.launch.local import LocalLauncher
from tengen.launch.messages import Dying, Failed, Report, Saved, Stop, Turn
from tengen.launch.process import Processes, RoleProcess, kill_stopping
from tengen.launch.workers import Worker
from tengen.recipes import make_config
from tengen.roles import write_config
from tengen.run import RunDirectory
from tests.refusals import refused
from tests.unit.launch.children import JOINS, started, the_hub

__all__ = ["the_hub"]

DETAILS = {"sealed": 0}


class Process(RoleProcess):
    """One that makes no pauses, and does not wait for a child that lingers."""

    first_backoff_s = leave_s = 0.0


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
            "role (learn) failed because of a bug, KeyError 'k'; report it with the "
            "traceback in the run's logs",
        ),
    ],
)
def test_the_last_words_of_a_child(error, code, line):
    told = []
    stream = SimpleNamespace(send=told.append)
    assert _tell(stream, error, "learn") == code
    assert told == [Failed(line, code)]


def test_an_environment_that_fails_ends_an_actor_of_its_own_alone():
    error = EnvError('environment ("x") must not raise; correct it')
    for at_once, message in (
        (True, Dying(str(error))),
        (False, Failed(str(error), 1)),
    ):
        told = []
        stream = SimpleNamespace(send=told.append)
        assert _tell(stream, error, "actor", at_once=at_once) == 1
        assert told == [message]


@pytest.fixture
def process(run, hub):
    processes = Processes(LocalLauncher(), hub, run, "tictactoe", at_once=False)
    return processes.start(Worker(name="gate", roles=("gate",)))


def turn(process, deaths=None):
    def on_death(role, how):
        assert deaths is not None, how
        deaths.append((role, how))

    return process.turn("gate", lambda report: None, on_death, DETAILS)


def test_a_child_that_dies_is_told_of_and_started_again(process):
    assert turn(process) is None
    process.kill()
    deaths = []
    assert turn(process, deaths) is None
    assert deaths == [("gate", "signal 9")]
    process.close()


def test_an_error_arrives_though_the_log_is_full(run, process):
    if not Path("/dev/full").exists():
        pytest.skip("a full disk is made of /dev/full")
    run.candidates.entry(0).mkdir(parents=True)
    (run.logs / "gate.log").symlink_to("/dev/full")
    with refused(RunError, "meta.json ("):
        turn(process)
    process.close()


def test_a_child_that_cannot_begin_says_why(run, process):
    shutil.rmtree(run.logs)
    run.logs.touch()
    with refused(RunError, "file ("):
        turn(process)
    process.close()


def test_a_role_that_another_process_has_is_a_usage_error(run, process):
    with run.lock("gate"), refused(UsageError, "is in use by process"):
        turn(process)
    process.close()


def test_a_successor_waits_while_the_old_process_saves(run, process):
    """As where a Ray actor is lost, and its role process lives on for a while."""
    assert turn(process) is None
    process.kill()
    lock = run.lock("gate", wait=True)
    stages = []

    def on_progress(report):
        stages.append(report.get("stage", ""))
        if "is in use by process" in stages[-1]:
            lock.release()

    assert process.turn("gate", on_progress, lambda *how: None, DETAILS) is None
    assert any("is in use by process" in stage for stage in stages)
    process.close()


class Scripted:
    """A child that answers with what it is given, and then is gone.

    Args:
        answers: What it sends.
        how: How it ends.
        on_turn: Called when it gets a turn.
        is_silent: Whether it says nothing after the answers until it is killed.
    """

    def __init__(
        self, *answers, how="signal 9", on_turn=None, is_silent=False, has_joined=True
    ):
        self.has_joined = has_joined
        self.silence = ""
        self.on_turn = on_turn
        self.was_killed = threading.Event()
        self._answers = list(answers)
        self._how = how
        self._is_silent = is_silent

    def send(self, message):
        if self.on_turn is not None and isinstance(message, Turn):
            self.on_turn()

    def receive(self):
        if self._answers:
            return self._answers.pop(0)
        assert not self._is_silent or self.was_killed.wait(900)
        return None

    def kill(self):
        self.was_killed.set()

    def end(self, timeout_s):
        return self._how


def scripted(*children, role="gate"):
    """A process whose children are these, in order."""
    left = list(children)
    return Process((role,), lambda: left.pop(0), "its log")


REPORT = Report({"candidate": 1})
KILLED, CRASHED, LOST = "signal 9", "exit code 3", "its actor's ActorDiedError"


def children(how, *finished):
    """Children that end like this, each after a finished turn or none."""
    return [Scripted(*[REPORT] * is_done, how=how) for is_done in finished]


@pytest.mark.parametrize(
    ("made", "num_turns", "num_deaths", "is_refused"),
    [
        (lambda: children(KILLED, *[0] * 5), 0, 4, True),
        # It crashes by itself soon after each turn.
        (lambda: children(CRASHED, *[1] * 6), 5, 4, True),
        # Hosts are lost one after another: each costs the process that worked there,
        # and the one that began there again.
        (lambda: children(LOST, *[0, 1] * 4, 1), 5, 8, False),
        # A kill after a finished turn begins a new row.
        (lambda: children(KILLED, 0, 0, 0, 1, 0, 0, 0, 1), 2, 7, False),
    ],
)
def test_a_row_of_deaths_ends_the_run_unless_work_was_done(
    made, num_turns, num_deaths, is_refused
):
    process, deaths = scripted(*made()), []
    for _ in range(num_turns):
        assert turn(process, deaths) == {"candidate": 1}
    if is_refused:
        with refused(RunError, "role (gate) died 5 times", "its log"):
            turn(process, deaths)
    assert len(deaths) == num_deaths


def test_a_process_that_worked_for_long_begins_the_count_anew():
    process, deaths = scripted(*children(CRASHED, *[1] * 9)), []
    process.healthy_s = 0.0
    for _ in range(9):
        assert turn(process, deaths) == {"candidate": 1}
    assert len(deaths) == 8


def test_a_turn_that_begins_after_the_stop_starts_nobody():
    process = scripted()  # would fail: there is no child
    process.stop()
    assert turn(process) == {"stopped": True}
    process.close()


def test_a_stop_while_a_child_starts_reaches_it():
    """It comes after the turn has seen no stop, and before there is a child to tell."""
    child = Scripted(is_silent=True)
    child.send = lambda message: isinstance(message, Stop) and child.kill()
    stopper = threading.Thread(target=lambda: process.stop())

    def starting():
        stopper.start()
        time.sleep(0.1)  # so long the stop waits for the child, or finds none
        return child

    process = RoleProcess(("gate",), starting, "its log")
    assert turn(process) == {"stopped": True}
    stopper.join()


def test_a_stop_ends_the_pause_before_the_next_child():
    process = scripted(Scripted())
    process.first_backoff_s = 1e6

    def on_death(role, how):
        threading.Timer(0.01, process.stop).start()

    report = process.turn("gate", lambda report: None, on_death, DETAILS)
    assert report == {"stopped": True}


HANGS = f"{JOINS}stream.receive(); stream.send(Alive(0.01, 'it hangs'))\n"


def test_a_process_that_promised_a_sign_of_life_is_killed_when_none_comes(hub):
    child = started(hub, ["-c", HANGS + "threading.Event().wait()"])
    process, deaths = scripted(child, Scripted(REPORT)), []
    assert turn(process, deaths) == {"candidate": 1}
    assert deaths == [("gate", "it hangs")]


def test_a_report_ends_the_watch(hub):
    """Though what the process does after its turn takes longer than it promised."""
    code = f"{HANGS}stream.send(Report({{}}))\nstream.receive(); time.sleep(1.5)\n"
    child = started(hub, ["-c", f"{code}stream.send(Saved(True))"])
    process = scripted(child)
    assert turn(process) == {}
    process.close()
    assert child.silence == ""


def learn(process, role="learn"):
    return process.turn(role, lambda report: None, lambda role, how: None, DETAILS)


@pytest.mark.parametrize(
    ("role", "answers", "is_lost"),
    [
        ("learn", [Report({}, False)], True),
        # How it ends after it has saved is no error.
        ("learn", [Report({}, False), Saved(True)], False),
        # It has nothing of its own, or its last turn saved.
        ("learn", [Report({}, True)], False),
        ("actor", [Report({}, True)], False),
        ("gate", [Report({}, True)], False),
    ],
)
def test_a_learner_that_ends_before_it_has_saved_is_an_error(role, answers, is_lost):
    process = scripted(Scripted(*answers, how="signal 11"), role=role)
    assert learn(process, role) == {}
    if is_lost:
        with refused(RunError, "role (learn)", "signal 11"):
            process.close()
    process.close()  # told once


def test_a_learner_that_is_stopped_before_it_has_joined_loses_nothing():
    process = scripted(Scripted(has_joined=False, on_turn=lambda: process.stop()))
    assert learn(process) == {"stopped": True}
    process.close()


def test_a_learner_that_dies_in_a_stopped_turn_is_an_error():
    child = Scripted(Report({}, False), how="signal 11")
    process = scripted(child)
    assert learn(process) == {}
    child.on_turn = process.stop
    assert learn(process) == {"stopped": True}
    with refused(RunError, "role (learn)", "signal 11"):
        process.close()


def test_a_learner_that_hangs_while_it_saves_can_be_killed():
    """As the second Ctrl-C of somebody's program does."""
    process = scripted(Scripted(Report({}, False), is_silent=True))
    assert learn(process) == {}
    threading.Timer(0.1, kill_stopping).start()
    with refused(RunError, "role (learn)"):
        process.close()


# A child as it is at the end of a run: asked to stop, it saves, says so, and lingers.
LINGERS = f"""{JOINS}
while isinstance(stream.receive(), Turn):
    stream.send(Report({{}}, False))
time.sleep(1)
open(sys.argv[1], "w").close()
stream.send(Saved(True))
threading.Event().wait()
"""
SENDS, SAVES = "stream.send(Report({}, False))", "stream.send(Saved(True))"
FULL = 'stream.send(Failed("full", 1)); stream.send(Saved(False))'


@pytest.fixture
def lingering(hub, tmp_path):
    def make(code=LINGERS):
        words = ["-c", code, str(tmp_path / "saved")]
        return Process(("learn",), lambda: started(hub, words), "its log")

    return make


def test_a_learner_is_waited_for_until_it_has_saved(tmp_path, lingering):
    """However long that takes; that it lingers afterwards is no error."""
    process = lingering()
    assert learn(process) == {}
    process.close()
    assert (tmp_path / "saved").exists()


def test_a_learner_saves_though_another_turn_failed(tmp_path, lingering):
    """The error is raised once it has, as nothing else waits for that."""
    process = lingering(LINGERS.replace(SENDS, 'stream.send(Failed("bad", 1)); break'))
    with refused(RunError, "bad"):
        learn(process)
    assert (tmp_path / "saved").exists()
    process.close()


@pytest.mark.parametrize("is_asked", [True, False], ids=["stop", "turn"])
def test_a_learner_that_cannot_save_is_not_waited_for(lingering, is_asked):
    """Its error is raised, though an environment lingers in it."""
    failing = LINGERS.replace(SAVES, FULL)
    if not is_asked:
        failing = failing.replace("while isinstance(stream.receive(), Turn)", "while 0")
    process = lingering(failing)
    if is_asked:
        assert learn(process) == {}
    with refused(RunError, "full"):
        process.close() if is_asked else learn(process)
