"""The runner, the ranks that hold processes, and their messages, without MPI."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tengen.cli import main
from tengen.distribution import pip_install_extra
from tengen.errors import RunError, UsageError
from tengen.launch import mpi
from tengen.launch.at_once.workers import Worker
from tengen.launch.process import RoleProcess
from tengen.launch.ranks import post as post_module
from tengen.launch.ranks import runner as runner_module
from tengen.launch.ranks.holder import Holder
from tengen.launch.ranks.post import Post
from tengen.launch.ranks.runner import Runner
from tengen.launch.ranks.table import Placed, filled, place
from tengen.observe import HostsLog, Place, read_hosts
from tengen.observe.status import read_status
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleResources, write_config
from tengen.run import RunDirectory
from tests.integration.runs import wait_for
from tests.unit.launch.ranks.fake_ranks import FakeWires, info

# A role that answers each turn with what it was told, and ends on "stop". Where it
# finds a mine it dies, once.
ROLE = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "turn" not in message:
        break
    if os.path.exists(message.get("mine", "")):
        os.unlink(message["mine"])
        sys.exit(3)
    print(json.dumps({"report": message}), flush=True)
"""

SAYS = """
import json, os, sys
sys.stdin.readline()
report = {"sees": os.environ.get("CUDA_VISIBLE_DEVICES")}
print(json.dumps({"report": report}), flush=True)
sys.stdin.readline()
"""


class Ranks:
    """The runner and its holders, each by threads of this process."""

    def __init__(self, size: int, **fields: object) -> None:
        self.wires = FakeWires(size)
        self.runner = Runner(self.wires.wire(0), info(0))
        self.holders: list[Holder] = []
        self.posts: list[Post] = []
        for rank in range(1, size):
            self._hold(rank, fields)

    def _hold(self, rank: int, fields: dict[str, object]) -> None:
        holder = Holder(lambda message: post.send(0, message))
        post = Post(
            self.wires.wire(rank),
            [0],
            lambda _, message: holder.take(message),
            lambda _: holder.lose("rank (0) is silent"),
        )
        self.holders.append(holder)
        self.posts.append(post)
        post.start()
        post.send(0, {"hello": vars(info(rank, f"host{rank}", **fields))})

    def close(self) -> None:
        self.wires.cut.clear()
        for holder, post in zip(self.holders, self.posts, strict=True):
            holder.take({"over": True})
            holder.wait()
            post.close()
        self.runner.end()


@pytest.fixture
def ranks() -> Iterator[Callable[..., Ranks]]:
    made: list[Ranks] = []

    def make(size: int, **fields: object) -> Ranks:
        made.append(Ranks(size, **fields))
        return made[-1]

    yield make
    for one in made:
        one.close()


def nothing(*words: Any) -> None:
    """Takes what a turn tells on its way."""


def test_a_role_beside_a_rank_is_as_one_of_this_machine(
    ranks: Callable[..., Ranks], tmp_path: Path
) -> None:
    both = ranks(3)
    both.runner.begin()
    assert [one.host for one in both.runner.ranks] == ["a", "host1", "host2"]
    deaths: list[str] = []
    processes = [
        RoleProcess(
            ("r",), lambda rank=rank: both.runner.start(rank, ["-c", ROLE]), "logs"
        )
        for rank in (1, 2)
    ]
    for number in range(20):
        for process in processes:
            report = process.turn("r", nothing, nothing, {"n": number})
            assert report == {"turn": "r", "n": number}

    mine = tmp_path / "mine"
    mine.touch()
    report = processes[0].turn(
        "r", nothing, lambda role, how: deaths.append(how), {"mine": str(mine)}
    )
    assert report == {"turn": "r", "mine": str(mine)}
    assert deaths == ["exit code 3"]
    for process in processes:
        process.stop()
        process.close()
    assert both.runner.losses == []


SEES = "import json, os; print(json.dumps(os.environ.get('CUDA_VISIBLE_DEVICES')))"


def test_a_process_sees_the_gpus_that_it_is_given(
    ranks: Callable[..., Ranks], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
    both = ranks(2)
    both.runner.begin()
    for devices, seen in ((["5", "6"], "5,6"), ([], ""), (None, "4,5,6")):
        child = both.runner.start(1, ["-c", SEES], devices)
        assert child.receive() == seen
        child.end(20.0)


@pytest.mark.parametrize("rank", [0, 1])
def test_the_launcher_gives_each_process_its_gpus(
    rank: int,
    ranks: Callable[..., Ranks],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(mpi, "child_arguments", lambda *words, **more: ["-c", SAYS])
    both = ranks(2)
    both.runner.begin()
    run = RunDirectory.create_or_resume(tmp_path / "run")
    worker = Worker(name="learn", roles=("learn",))
    table = [Placed(worker=worker, rank=rank, host="a", devices=("3",))]
    launcher = mpi.MpiLauncher(run, "tictactoe", both.runner, table)
    process = launcher.start(("learn",), 1, RoleResources())
    assert process.turn("learn", nothing, nothing, {}) == {"sees": "3"}
    process.close()


def test_a_process_is_killed_beside_its_rank(ranks: Callable[..., Ranks]) -> None:
    both = ranks(2)
    both.runner.begin()
    child = both.runner.start(1, ["-c", "import time; time.sleep(600)"])
    child.kill()
    assert child.receive() is None
    assert child.receive() is None
    assert child.end(20.0) == "signal 9"


def test_the_end_of_a_rank_ends_its_processes(ranks: Callable[..., Ranks]) -> None:
    both = ranks(2)
    both.runner.begin()
    child = both.runner.start(1, ["-c", ROLE])
    child.send({"turn": "r"})
    assert child.receive() == {"report": {"turn": "r"}}
    assert both.runner.end()
    assert both.holders[0].wait() == ""
    (held,) = both.holders[0]._held.values()
    assert held._process.wait(900) == 0


def test_a_rank_that_is_silent_is_lost_with_its_processes(
    ranks: Callable[..., Ranks], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post_module, "SILENCE_S", 3.0)
    monkeypatch.setattr(runner_module, "SILENCE_S", 3.0)
    monkeypatch.setattr(post_module, "_ALIVE_S", 0.05)
    both = ranks(3)
    both.runner.begin()
    made = override(
        make_config("tictactoe", None, None), ["launch.roles.selfplay.count=2"]
    )
    both.runner.know(place(made, both.runner.ranks))
    child = both.runner.start(1, ["-c", ROLE])
    other = both.runner.start(2, ["-c", ROLE])
    time.sleep(1.0)
    assert both.runner.losses == []  # nobody is lost who says that he lives
    both.wires.cut.add(1)
    assert child.receive() is None
    assert child.end(20.0) == "its rank, 1 on host1, which said nothing for 3 s"
    line = r"^rank \(1 on host1, selfplay-0\) said nothing for 3 s; .* to go on$"
    with pytest.raises(RunError, match=line):
        both.runner.start(1, ["-c", ROLE])
    assert len(both.runner.losses) == 1
    other.send({"turn": "r"})
    assert other.receive() == {"report": {"turn": "r"}}
    # And the rank ends its processes, as it hears no runner any more.
    assert both.holders[0].wait() == "rank (0) is silent"
    assert not both.runner.end()


def test_a_pause_of_the_whole_call_is_no_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(post_module, "_MOST_PAUSE_S", 0.01)
    monkeypatch.setattr(post_module, "SILENCE_S", 0.9)
    lost: list[int] = []
    slow = FakeWires(2)
    num_pauses = 0
    has_paused, may_go_on = threading.Event(), threading.Event()

    class Slow(type(slow.wire(0))):  # type: ignore[misc]
        def receive(self) -> None:
            nonlocal num_pauses
            num_pauses += 1
            if num_pauses == 6:
                has_paused.set()
                may_go_on.wait(900)
            elif num_pauses < 6:
                time.sleep(0.3)  # as where the process is stopped

    paused = Post(Slow(slow, 0), [1], nothing, lost.append)
    paused.start()
    assert has_paused.wait(900)
    assert lost == []
    may_go_on.set()
    assert paused.close()


def test_ranks_that_do_not_answer_are_found(ranks: Callable[..., Ranks]) -> None:
    both = ranks(4)
    both.runner.begin()
    assert both.runner.find_dead() == []
    both.wires.cut.add(2)
    (line,) = both.runner.find_dead()
    assert line.startswith("rank (2 on host2) is dead or does not answer; ")
    assert both.runner.find_dead() == []


def test_a_rank_that_never_begins_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner_module, "_HELLO_S", 0.2)
    runner = Runner(FakeWires(3).wire(0), info(0))
    with pytest.raises(RunError, match=r"^ranks \(1, 2\) did not begin within 0.2 s;"):
        runner.begin()
    assert not runner.end()


def test_another_version_is_refused(ranks: Callable[..., Ranks]) -> None:
    both = ranks(2, version="0.1")
    with pytest.raises(UsageError, match=r"^tengen \(0.1 on rank 1, host host1\) must"):
        both.runner.begin()


def test_a_rank_whose_file_system_hangs_is_named_while_it_is_waited_for(
    ranks: Callable[..., Ranks], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = ranks(3)
    both.runner.begin()
    monkeypatch.setattr(runner_module, "_SAY_S", 0.1)
    hangs, was_told = both.holders[1], threading.Event()
    look = hangs._look

    def look_late(message: dict[str, Any]) -> None:
        was_told.wait(900)
        look(message)

    monkeypatch.setattr(hangs, "_look", look_late)
    run = RunDirectory.create_or_resume(tmp_path / "run")
    log = HostsLog(run, "call", "1 on a", [])
    wanted = f"waiting for ranks 2 to look at {run.path.absolute()}"

    def tell(line: str, **_: object) -> None:
        if line == wanted:  # at first the other one may be waited for, too
            was_told.set()

    monkeypatch.setattr("builtins.print", tell)
    both.runner.look(run, "call")
    assert was_told.is_set()
    log.close()


def test_a_host_without_the_run_directory_is_named(
    ranks: Callable[..., Ranks], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tengen.launch.ranks.holder._LOOK_S", 0.5)
    run = RunDirectory.create_or_resume(tmp_path / "run")
    both = ranks(3)
    both.runner.begin()
    line = r"must be the same folder .* not for rank 1 on host1, rank 2 on host2; give"
    with pytest.raises(UsageError, match=line):
        both.runner.look(run, "call")
    log = HostsLog(run, "another", "1 on a", [])
    with pytest.raises(UsageError, match=line):
        both.runner.look(run, "call")
    both.runner.look(run, "another")
    log.close()


def test_a_program_that_is_not_there_is_an_error_of_its_role(
    ranks: Callable[..., Ranks], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = ranks(2)
    both.runner.begin()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    process = RoleProcess(("r",), lambda: both.runner.start(1, []), "logs")
    with pytest.raises(RunError, match=r"/nowhere/python"):
        process.turn("r", nothing, nothing, {})
    process.close()


def test_status_says_where_processes_are(tmp_path: Path) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, make_config("tictactoe", None, None))
    assert read_hosts(run) is None
    row = Place(
        place="rank 1", host="b", name="selfplay", roles=("selfplay",), num_threads=3
    )
    with run.lock("train"):
        holder = run.lock_holder("train")
        assert holder is not None
        log = HostsLog(run, "call", holder, [row])
        (told,) = read_status(run)["places"]
        assert (told["place"], told["host"], told["num_threads"]) == ("rank 1", "b", 3)
        assert read_status(run)["lost"] == []
    log.lost("rank (1 on b) died")
    log.close()
    assert read_status(run)["places"] == []
    assert read_status(run)["lost"] == ["rank (1 on b) died"]
    # Another launcher runs now.
    other = HostsLog(run, "next", "1 on elsewhere", [row])
    other.close()
    with run.lock("train"):
        assert read_status(run)["places"] == []


def test_it_is_known_whether_the_learner_is_beside_the_runner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranks = [info(0), info(1), info(2, "b", devices=["0"]), info(3, "b")]
    monkeypatch.setattr(mpi, "_runner", SimpleNamespace(ranks=ranks))
    made = make_config("tictactoe", None, None)
    assert mpi.has_learner_here(filled(made, ranks))
    away = override(made, ["launch.roles.learn.num_gpus=1"])
    assert not mpi.has_learner_here(filled(away, ranks))


def test_without_mpirun_it_says_how_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mpi4py", reason="needs the extra mpi")
    for name in mpi._STARTED:
        monkeypatch.delenv(name, raising=False)
    words = ["train", "tictactoe", "--launch", "mpi", "--out", str(tmp_path / "run")]
    assert main(words) == 2
    assert capsys.readouterr().err == (
        "tengen: launch (mpi) must be started by mpirun; mpirun -n 4 tengen train TASK "
        "--launch mpi\n"
    )
    assert not (tmp_path / "run").exists()


def test_without_its_package_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    words = ["train", "tictactoe", "--launch", "mpi", "--out", str(tmp_path / "run")]
    assert main(words) == 2
    assert pip_install_extra("mpi") in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_two_threads_may_send_at_once() -> None:
    wires = FakeWires(2)
    taken: list[int] = []
    sender = Post(wires.wire(0), [1], nothing, nothing)
    receiver = Post(wires.wire(1), [0], lambda _, m: taken.append(m["n"]), nothing)
    sender.start()
    receiver.start()
    threads = [
        threading.Thread(
            target=lambda first=first: [
                sender.send(1, {"n": first + k}) for k in range(500)
            ]
        )
        for first in (0, 1000)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sender.close()
    wait_for(lambda: len(taken) == 1000, 20)
    assert receiver.close()
    for first in (0, 1000):
        own = [n for n in taken if first <= n < first + 1000]
        assert own == list(range(first, first + 500))
