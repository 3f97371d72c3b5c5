"""The runner, the ranks that hold processes, and their messages, without MPI."""

import contextlib
import json
import queue
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from tengen.cli import main
from tengen.distribution import pip_install_extra
from tengen.errors import RunError, UsageError
from tengen.launch import mpi
from tengen.launch.messages import Begun, Report, Stop, Turn
from tengen.launch.process import RoleProcess
from tengen.launch.ranks.runner import Holder, Runner
from tengen.launch.ranks.table import filled, place
from tengen.launch.wire import Stream, join
from tengen.observe import HostsLog, Place, read_hosts
from tengen.observe.status import read_status
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import write_config
from tengen.run import RunDirectory
from tests.refusals import refused
from tests.unit.launch.children import JOINS, placed, started, the_hub
from tests.unit.launch.ranks.test_rank_table import info

__all__ = ["the_hub"]

# A role that answers each turn with what it was told and sees, and ends on "stop".
# Where it finds a mine it dies, once.
ROLE = f"""{JOINS}
while isinstance(message := stream.receive(), Turn):
    told = dict(message.details)
    if os.path.exists(told.get("mine", "")):
        os.unlink(told["mine"])
        sys.exit(3)
    stream.send(Report(told | {{"sees": os.environ.get("CUDA_VISIBLE_DEVICES")}}))
"""
ENDLESS = f"{JOINS}time.sleep(600)"


class Ranks:
    """The runner and its holders, each with threads of this process."""

    def __init__(self, hub, size):
        self.holders: list[Holder] = []
        self.streams: list[Stream] = []
        self.ends: list[bool] = []
        infos = [info(rank, f"host{rank}" if rank else "a") for rank in range(size)]
        tickets = {one.rank: hub.ticket() for one in infos[1:]}
        self.runner = Runner(infos, tickets, say_s=0.1)
        for ticket in tickets.values():
            stream = join(dict(ticket.environment), Begun())
            holder = Holder(stream)
            self.holders.append(holder)
            self.streams.append(stream)
        self._threads = [
            threading.Thread(target=lambda one=one: self.ends.append(one.run()))
            for one in self.holders
        ]

    def begin(self):
        for thread in self._threads:
            thread.start()
        self.runner.begin()

    def close(self):
        self.runner.end()
        for stream, thread in zip(self.streams, self._threads, strict=True):
            thread.join()
            stream.close()


@pytest.fixture
def ranks(hub):
    made: list[Ranks] = []

    def make(size):
        made.append(Ranks(hub, size))
        made[-1].begin()
        return made[-1]

    yield make
    for one in made:
        one.close()


def nothing(*words):
    """Takes what a turn tells on its way."""


@pytest.fixture
def start(hub):
    """Starts a program beside a rank."""

    def begin(both, rank, code=ROLE, **fields):
        place = placed("r", rank=rank, **fields)
        return started(hub, ["-c", code], both.runner, place)

    return begin


def test_a_role_beside_a_rank_is_as_one_of_this_machine(
    ranks, start, tmp_path, monkeypatch
):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    both = ranks(3)
    assert [one.host for one in both.runner.ranks] == ["a", "host1", "host2"]
    deaths: list[str] = []
    processes = [
        RoleProcess(("r",), lambda rank=rank: start(both, rank), "logs")
        for rank in (1, 2)
    ]
    for number in range(20):
        for process in processes:
            report = process.turn("r", nothing, nothing, {"n": number})
            assert report == {"n": number, "sees": None}

    mine = tmp_path / "mine"
    mine.touch()
    report = processes[0].turn(
        "r", nothing, lambda role, how: deaths.append(how), {"mine": str(mine)}
    )
    assert report == {"mine": str(mine), "sees": None}
    assert deaths == ["exit code 3"]
    for process in processes:
        process.stop()
        process.close()
    assert both.runner.losses == []


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("devices", "seen"), [(("5", "6"), "5,6"), ((), ""), (None, "4,5,6")]
)
def test_a_process_sees_the_gpus_that_it_is_given(
    ranks, hub, monkeypatch, rank, devices, seen
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
    both = ranks(2)
    place = placed("r", rank=rank, devices=devices)
    launcher = mpi.MpiLauncher(both.runner, ())
    process = RoleProcess(
        ("r",), lambda: started(hub, ["-c", ROLE], launcher, place), "logs"
    )
    assert process.turn("r", nothing, nothing, {}) == {"sees": seen}
    process.close()


def test_a_process_is_killed_beside_its_rank(ranks, start):
    both = ranks(2)
    child = start(both, 1, ENDLESS)
    assert isinstance(child.join(), Begun)
    child.kill()
    assert child.receive() is None
    assert child.receive() is None
    assert child.end(20.0) == "signal 9"


def test_the_end_of_the_runner_ends_the_processes_of_a_rank(ranks, start):
    both = ranks(2)
    child = start(both, 1)
    child.send(Turn("r", {"n": 1}))
    while not isinstance(child.receive(), Report):
        pass
    assert both.runner.end()
    child.end(20.0)
    both.close()
    assert both.ends == [True]


def test_a_rank_that_is_lost_is_named_with_its_processes(ranks, start):
    both = ranks(3)
    made = override(
        make_config("tictactoe", None, None), ["launch.roles.selfplay.count=2"]
    )
    both.runner.know(place(made, both.runner.ranks))
    child, other = start(both, 1), start(both, 2)
    assert isinstance(child.join(), Begun)
    assert isinstance(other.join(), Begun)
    assert both.runner.losses == []
    both.streams[0].close()
    # Though the process itself lives, and its connection: nobody could end it.
    assert child.receive() is None
    assert child.end(20.0) == "its rank, 1 on host1, which is dead or does not answer"
    with refused(RunError, "rank (1 on host1, selfplay-0)"):
        start(both, 1)
    assert len(both.runner.losses) == 1
    other.send(Turn("r", {"n": 1}))
    assert isinstance(other.receive(), Report)
    other.send(Stop())
    assert other.receive() is None
    assert other.end(20.0) == "exit code 0"
    # And the rank ends, as it hears no runner any more.
    assert not both.runner.end()
    both.close()
    assert sorted(both.ends) == [False, True]


class Comm:
    """A communicator of MPI between threads, with the calls that the launcher uses."""

    def __init__(self, rank, boxes):
        self._rank = rank
        self._boxes = boxes
        self._arrived: dict[int, bytes] = {}

    def Get_size(self):
        return len(self._boxes)

    def Isend(self, data, dest):
        self._boxes[dest].put((self._rank, data))
        return SimpleNamespace(Test=lambda: True)

    def Irecv(self, data, source):
        def test():
            with contextlib.suppress(queue.Empty):
                self._arrived.update([self._boxes[self._rank].get_nowait()])
            found = self._arrived.get(source)
            if found is not None:
                data[: len(found)] = found
            return found is not None

        return SimpleNamespace(Test=test)


@pytest.fixture
def comms():
    """The communicators of four ranks."""
    boxes: list[queue.Queue[tuple[int, bytes]]] = [queue.Queue() for _ in range(4)]
    return [Comm(rank, boxes) for rank in range(4)]


def test_each_rank_tells_what_it_has_and_gets_its_own_ticket(comms):
    infos = [info(rank, f"host{rank}", devices=["0", "1"]) for rank in range(4)]
    tickets = {rank: {"ticket": f"of {rank}"} for rank in range(1, 4)}
    with ThreadPoolExecutor(3) as pool:
        told = [pool.submit(mpi.introduce, comms[k], infos[k]) for k in (3, 1, 2)]
        found = mpi.meet(comms[0], infos[0])
        assert [one.host for one in found] == [one.host for one in infos]
        assert [list(one.devices) for one in found] == [["0", "1"]] * 4
        mpi.hand_out(comms[0], tickets)
        assert [one.result() for one in told] == [tickets[k] for k in (3, 1, 2)]


def test_ranks_that_do_not_begin_are_named(comms, capsys):
    comms[2].Isend(json.dumps(vars(info(2)) | {"of_later_version": 1}).encode(), 0)
    with refused(RunError, "ranks (1, 3)"):
        mpi.meet(comms[0], info(0), hello_s=0.2, say_s=0.05)
    assert "waiting for ranks 1, 3 to start" in capsys.readouterr().out


def test_a_rank_that_never_joins_is_named(hub):
    tickets = {1: hub.ticket(), 2: hub.ticket()}
    runner = Runner([info(0), info(1), info(2)], tickets, join_s=0.2)
    with refused(RunError, "ranks (1, 2)"):
        runner.begin()
    assert not runner.end()


def test_a_rank_whose_file_system_hangs_is_named_while_it_is_waited_for(
    ranks, tmp_path, monkeypatch, capsys
):
    both = ranks(3)
    hangs = both.holders[1]
    look = hangs._look
    run = RunDirectory.create_or_resume(tmp_path / "run")
    log = HostsLog(run, "call", "1 on a", [])
    wanted = f"waiting for ranks 2 to check {run.path.absolute()}"
    told: list[str] = []

    def look_late(message):
        until = time.monotonic() + 900
        # At first the other one may be waited for, too.
        while wanted not in told and time.monotonic() < until:
            time.sleep(0.01)
            told.extend(capsys.readouterr().out.splitlines())
        look(message)

    monkeypatch.setattr(hangs, "_look", look_late)
    both.runner.look(run, "call")
    assert wanted in told
    log.close()


def test_a_host_without_the_run_directory_is_named(ranks, tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    both = ranks(3)
    for holder in both.holders:
        holder.look_s = 0.5
    with refused(UsageError, "must be the same folder", "missing on rank 1 on host1"):
        both.runner.look(run, "call")
    log = HostsLog(run, "another", "1 on a", [])
    with refused(UsageError, "must be the same folder", "missing on rank 1 on host1"):
        both.runner.look(run, "call")
    both.runner.look(run, "another")
    log.close()


def test_a_program_that_is_not_there_is_an_error_of_its_role(ranks, start, monkeypatch):
    both = ranks(2)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    process = RoleProcess(("r",), lambda: start(both, 1), "logs")
    process.first_backoff_s = 0.0
    with refused(RunError, "/nowhere/python"):
        process.turn("r", nothing, nothing, {})
    process.close()


@pytest.mark.parametrize(
    ("hosts", "is_loopback"), [(["a", "a"], True), (["a", "localhost"], False)]
)
def test_processes_of_other_hosts_alone_are_let_in(hosts, is_loopback):
    ranks = [info(rank, host) for rank, host in enumerate(hosts)]
    found = mpi._addresses(ranks)
    assert found
    if is_loopback:
        assert found == ["127.0.0.1"]


def test_status_says_where_processes_are(tmp_path):
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


def test_it_is_known_whether_the_learner_is_beside_the_runner(monkeypatch):
    ranks = [info(0), info(1), info(2, "b", devices=["0"]), info(3, "b")]
    monkeypatch.setattr(mpi, "_met", (SimpleNamespace(ranks=ranks), None))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"launch.listen=127.0.0.1:{taken.getsockname()[1] - 2}"
        made = override(make_config("tictactoe", None, None), [listen])
        with refused(UsageError, "launch.listen ("):
            mpi.MpiLauncher.check_doors(filled(made, ranks))
        away = override(made, ["launch.roles.learn.num_gpus=1"])
        mpi.MpiLauncher.check_doors(filled(away, ranks))


def test_without_mpirun_it_says_how_to_start(tmp_path, monkeypatch, capsys):
    pytest.importorskip("mpi4py", reason="needs the extra mpi")
    for name in mpi._STARTED:
        monkeypatch.delenv(name, raising=False)
    words = ["train", "tictactoe", "--launch", "mpi", "--out", str(tmp_path / "run")]
    assert main(words) == 2
    assert capsys.readouterr().err == (
        "tengen: launch (mpi) must be started with mpirun; use mpirun -n 4 tengen "
        "train TASK --launch mpi\n"
    )
    assert not (tmp_path / "run").exists()


def test_without_its_package_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    words = ["train", "tictactoe", "--launch", "mpi", "--out", str(tmp_path / "run")]
    assert main(words) == 2
    assert pip_install_extra("mpi") in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
