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
from tengen.launch.messages import Alive, Dying, Failed, Report, Saved, Stop
from tengen.launch.process import Processes, RoleProcess
from tengen.launch.workers import Worker
from tengen.recipes import make_config
from tengen.roles import write_config
from tengen.run import RunDirectory
from tests.unit.launch.children import JOINS, started, the_hub

__all__ = ["the_hub"]

DETAILS = {"sealed": 0}


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


def test_a_child_that_dies_is_told_of_and_started_again(process, monkeypatch):
    monkeypatch.setattr("tengen.launch.process._FIRST_BACKOFF_S", 0.0)
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
    with pytest.raises(RunError, match=r"^meta\.json \(.*000000/meta\.json\)"):
        turn(process)
    process.close()


def test_a_child_that_cannot_begin_says_why(run, process):
    shutil.rmtree(run.logs)
    run.logs.touch()
    with pytest.raises(
        RunError, match=r"^file \(.*logs/gate\.log\) cannot be used, not"
    ):
        turn(process)
    process.close()


def test_a_role_that_another_process_has_is_a_usage_error(run, process):
    with run.lock("gate"), pytest.raises(UsageError, match="is in use by process"):
        turn(process)
    process.close()


class Scripted:
    """A child that answers with what it is given, and then is gone."""

    has_joined = True

    def __init__(self, *answers):
        self.sent = []
        self._answers = list(answers)

    def send(self, message):
        self.sent.append(message)

    def receive(self):
        return self._answers.pop(0) if self._answers else None

    def end(self, timeout_s):
        return "signal 9"


def scripted(monkeypatch, *children):
    """A process whose children are these, in order."""
    monkeypatch.setattr("tengen.launch.process._FIRST_BACKOFF_S", 0.0)
    left = list(children)
    return RoleProcess(("gate",), lambda: left.pop(0), "its log")


REPORT = Report({"candidate": 1})


def test_a_turn_that_begins_after_the_stop_starts_nobody(monkeypatch):
    process = scripted(monkeypatch)  # would fail: there is no child
    process.stop()
    assert turn(process) == {"stopped": True}
    process.close()


def test_a_stop_while_a_child_starts_reaches_it(monkeypatch):
    """It comes after the turn has seen no stop, and before there is a child to tell."""
    was_told = threading.Event()

    class Waiting(Scripted):
        def send(self, message):
            if isinstance(message, Stop):
                was_told.set()

        def receive(self):
            assert was_told.wait(900)

    stopper = threading.Thread(target=lambda: process.stop())

    def starting():
        stopper.start()
        time.sleep(0.1)  # so long the stop waits for the child, or finds none
        return Waiting()

    process = RoleProcess(("gate",), starting, "its log")
    assert turn(process) == {"stopped": True}
    stopper.join()


def test_a_stop_ends_the_pause_before_the_next_child(monkeypatch):
    monkeypatch.setattr("tengen.launch.process._FIRST_BACKOFF_S", 1e6)
    children = [Scripted()]
    process = RoleProcess(("gate",), lambda: children.pop(0), "its log")

    def on_death(role, how):
        threading.Timer(0.01, process.stop).start()

    report = process.turn("gate", lambda report: None, on_death, DETAILS)
    assert report == {"stopped": True}


def test_a_role_that_dies_again_and_again_is_named(monkeypatch):
    process = scripted(monkeypatch, *(Scripted() for _ in range(5)))
    deaths = []
    with pytest.raises(RunError) as refused:
        turn(process, deaths)
    assert str(refused.value) == (
        "role (gate) died 5 times in a row, last with signal 9; see its log"
    )
    assert len(deaths) == 4


class Crashing(Scripted):
    """One that is not killed from outside, but ends by itself."""

    def end(self, timeout_s):
        return "exit code 3"


def test_a_role_that_crashes_after_each_finished_turn_is_named(monkeypatch):
    process = scripted(monkeypatch, *(Crashing(REPORT) for _ in range(6)))
    deaths = []
    for _ in range(5):
        assert turn(process, deaths) == {"candidate": 1}
    line = "last with exit code 3, by code of its task or of a library; see its log"
    with pytest.raises(RunError, match=f"died 5 times in a row, {line}$"):
        turn(process, deaths)
    assert len(deaths) == 4


def test_a_process_that_worked_for_long_begins_the_count_anew(monkeypatch):
    monkeypatch.setattr("tengen.launch.process._HEALTHY_S", 0.0)
    process = scripted(monkeypatch, *(Crashing(REPORT) for _ in range(9)))
    deaths = []
    for _ in range(9):
        assert turn(process, deaths) == {"candidate": 1}
    assert len(deaths) == 8


class Silent(Scripted):
    """It says nothing after its answers until it is killed."""

    def __init__(self, *answers):
        super().__init__(*answers)
        self._was_killed = threading.Event()

    def receive(self):
        found = super().receive()
        assert found is not None or self._was_killed.wait(900)
        return found

    def kill(self):
        self._was_killed.set()


def test_a_process_that_promised_a_sign_of_life_is_killed_when_none_comes(monkeypatch):
    alive = Alive(0.01, "the environment hangs")
    process = scripted(monkeypatch, Silent(alive), Scripted(REPORT))
    deaths = []
    assert turn(process, deaths) == {"candidate": 1}
    assert deaths == [("gate", "the environment hangs")]


def test_a_report_ends_the_watch(monkeypatch):
    """Also where the process of the watch gets no processor until then."""
    now_s = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now_s[0])
    monkeypatch.setattr("tengen.launch.joined.time", clock)
    alive = Alive(0.05, "it hangs")
    child = Silent(alive, REPORT)
    process = scripted(monkeypatch, child)
    assert turn(process) == {"candidate": 1}
    now_s[0] = 1e6
    assert not child._was_killed.wait(0.2)


# A child as it is at the end of a run: asked to stop, it saves, says so, and lingers.
LINGERS = f"""{JOINS}
while isinstance(stream.receive(), Turn):
    stream.send(Report({{}}, False))
time.sleep(1)
open(sys.argv[1], "w").close()
stream.send(Saved(True))
threading.Event().wait()
"""


@pytest.fixture
def lingering(hub, tmp_path, monkeypatch):
    monkeypatch.setattr("tengen.launch.process._LEAVE_S", 0.0)

    def make(code):
        words = ["-c", code, str(tmp_path / "saved")]
        return RoleProcess(("learn",), lambda: started(hub, words), "its log")

    return make


def learn(process):
    return process.turn("learn", lambda report: None, lambda role, how: None, DETAILS)


def test_a_learner_is_waited_for_until_it_has_saved(tmp_path, lingering):
    """However long that takes; that it lingers afterwards is no error."""
    process = lingering(LINGERS)
    assert learn(process) == {}
    process.close()
    assert (tmp_path / "saved").exists()


class Unsaved(Scripted):
    def __init__(self, *answers, how):
        super().__init__(Report({}, False), *answers)
        self._how = how

    def end(self, timeout_s):
        return self._how


LOST = r"^role \(learn\) ended before it had saved, with signal 11; .* is lost, see"


def test_a_learner_that_dies_before_it_has_saved_is_an_error(monkeypatch):
    process = scripted(monkeypatch, Unsaved(how="signal 11"))
    assert learn(process) == {}
    with pytest.raises(RunError, match=LOST):
        process.close()
    process.close()  # told once


def test_how_a_learner_ends_after_it_has_saved_is_no_error(monkeypatch):
    process = scripted(monkeypatch, Unsaved(Saved(True), how="signal 11"))
    assert learn(process) == {}
    process.close()


def test_a_learner_that_is_stopped_before_it_has_joined_loses_nothing(monkeypatch):
    child = Scripted()
    child.has_joined = False
    child.send = lambda message: process._is_stopping.set()
    process = scripted(monkeypatch, child)
    assert learn(process) == {"stopped": True}
    process.close()


def test_a_learner_that_dies_in_a_stopped_turn_is_an_error(monkeypatch):
    child = Unsaved(how="signal 11")
    process = scripted(monkeypatch, child)
    assert learn(process) == {}
    child.send = lambda message: process._is_stopping.set()
    assert learn(process) == {"stopped": True}
    with pytest.raises(RunError, match=LOST):
        process.close()


@pytest.mark.parametrize("role", ["actor", "gate", "learn"])
def test_what_is_saved_is_not_lost_with_its_process(monkeypatch, role):
    """It has nothing of its own, or its last turn saved."""
    process = scripted(monkeypatch, Scripted(Report({}, True)))
    process.turn(role, lambda report: None, lambda role, how: None, DETAILS)
    process.close()


def test_a_learner_saves_though_another_turn_failed(tmp_path, lingering):
    """The error is raised once it has, as nothing else waits for that."""
    sent = "stream.send(Report({}, False))"
    process = lingering(LINGERS.replace(sent, 'stream.send(Failed("bad", 1)); break'))
    with pytest.raises(RunError, match=r"^bad$"):
        learn(process)
    assert (tmp_path / "saved").exists()
    process.close()


@pytest.mark.parametrize("is_asked", [True, False], ids=["stop", "turn"])
def test_a_learner_that_cannot_save_is_not_waited_for(lingering, is_asked):
    """Its error is raised, though an environment lingers in it."""
    failing = LINGERS.replace(
        "stream.send(Saved(True))",
        'stream.send(Failed("full", 1)); stream.send(Saved(False))',
    )
    if not is_asked:
        failing = failing.replace("while isinstance(stream.receive(), Turn)", "while 0")
    process = lingering(failing)
    if is_asked:
        assert learn(process) == {}
    with pytest.raises(RunError, match=r"^full$"):
        process.close() if is_asked else learn(process)


class Lost(Scripted):
    """One whose host is lost."""

    def end(self, timeout_s):
        return "its actor's ActorDiedError"


def test_hosts_that_are_lost_one_after_another_do_not_end_the_run(monkeypatch):
    """Each costs two deaths: of what worked there, and of what began there again."""
    children = [child for _ in range(4) for child in (Lost(), Lost(REPORT))]
    process = scripted(monkeypatch, *children, Scripted(REPORT))
    deaths = []
    for _ in range(5):
        assert turn(process, deaths) == {"candidate": 1}
    assert len(deaths) == 8


def test_a_kill_after_a_finished_turn_begins_the_count_anew(monkeypatch):
    before, after = ([Scripted() for _ in range(3)] for _ in range(2))
    process = scripted(monkeypatch, *before, Scripted(REPORT), *after, Scripted(REPORT))
    assert turn(process, []) == {"candidate": 1}
    deaths = []
    assert turn(process, deaths) == {"candidate": 1}
    assert len(deaths) == 4  # with that of the child which had finished a turn
