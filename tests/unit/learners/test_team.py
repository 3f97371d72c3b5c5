"""A learner that leads, and those that follow it: they come, leave, die and hang."""

from __future__ import annotations

import contextlib
import json
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tengen.errors import RunError, TengenError, UsageError
from tengen.experience import ExperiencePart
from tengen.learners import Learner
from tengen.learners.follower import Follower
from tengen.learners.group import GroupLost
from tengen.learners.peer import LEARNERS, greeting
from tengen.learners.shards import Shards
from tengen.learners.team import Team
from tengen.learners.torch_group import TorchGroup
from tengen.transport import Client, HostFolder, Server
from tests.oracle.several_learners import BATCH, Tape, learned_alone, make_learner
from tests.refusals import refused

torch.set_num_threads(1)

# Draws no random numbers, as learners of one process share a generator.
CASE = "alphazero"
COUNT = 3


class Leader:
    """A leading learner, and the folder by which it is found."""

    def __init__(self, folder, patience_s, case, host):
        self.case = case
        self.tape = Tape(case)
        given: Any = self.tape
        self.said: list[str] = []
        self.stop = threading.Event()
        self.team = Team(
            given,
            COUNT,
            host=host,
            stop=self.stop,
            patience_s=patience_s,
            say=self.said.append,
        )
        self.host = HostFolder("learners", folder)
        self.server = Server(self.host.listen(), self.team.service)
        self.learner: Learner = make_learner(case, self.tape, self.team)
        self.client = Client(LEARNERS, folder)

    def connect(self, index):
        return self.client.open(greeting(index, ""))[0]

    def settle(self, size):
        until = time.monotonic() + 600
        while self.team.size != size:
            assert time.monotonic() < until, self.said
            self.team.settle(self.learner)
            time.sleep(0.005)

    def close(self):
        self.server.close()
        self.team.close()
        self.learner.close()
        self.host.remove()


@pytest.fixture
def make_leader():
    made = []
    with tempfile.TemporaryDirectory(prefix="tengen-") as folder:

        def make(patience_s=900.0, case=CASE, host="127.0.0.1"):
            made.append(Leader(Path(folder) / f"{len(made)}", patience_s, case, host))
            return made[-1]

        yield make
        for leader in made:
            leader.close()


class Following:
    """A follower in a thread; ``sees`` is called before each draw."""

    def __init__(self, leader, index, sees=lambda connection: None, patience_s=900.0):
        self.stop = threading.Event()
        self.stages: list[int] = []
        self.case = leader.case
        connection = leader.connect(index)

        class Seeing(Tape):
            def draw(self, *numbers):
                sees(connection)
                return super().draw(*numbers)

        self.follower = Follower(
            connection,
            ExperiencePart(lambda shared: Seeing(leader.case)),
            self._make_learner,
            self.stop,
            patience_s=patience_s,
        )
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _make_learner(self, stage):
        self.stages.append(stage)
        return make_learner(self.case, None, None)

    def _run(self):
        self.follower.begin()
        try:
            self.follower.work()
        finally:
            self.follower.close()

    def end(self):
        self.thread.join(900)
        assert not self.thread.is_alive()


def check_weights(leader, num_steps):
    """The weights are those of one learner after as many steps."""
    alone = learned_alone(leader.case, num_steps)
    for name, tensor in leader.learner.state().tensors.items():
        if name != "generator":
            torch.testing.assert_close(
                tensor, alone.tensors[name], rtol=1e-4, atol=1e-5
            )


def test_learners_come_and_leave_between_batches(make_leader):
    leader = make_leader()
    list(leader.learner.steps(2))
    one = Following(leader, 1)
    leader.settle(2)
    list(leader.learner.steps(3))
    other = Following(leader, 2)
    leader.settle(3)
    list(leader.learner.steps(3))
    leader.team.check_same()
    one.stop.set()
    steps = leader.learner.steps(25)
    while leader.team.size == 3:
        next(steps)
    list(steps)
    one.end()
    leader.team.close()
    other.end()
    assert leader.team.num_lost == 0
    assert leader.learner.num_steps == 33
    assert leader.tape.num_drawn == 33
    assert one.follower.num_lost == other.follower.num_lost == 0
    assert 6 <= one.follower.num_steps < other.follower.num_steps == 28


def test_steps_are_recorded_before_and_after_a_group(make_leader):
    leader = make_leader(case="recorded")
    list(leader.learner.steps(4))
    assert leader.learner.is_recorded
    one = Following(leader, 1)
    leader.settle(2)
    list(leader.learner.steps(4))
    assert not leader.learner.is_recorded
    leader.team.check_same()
    one.stop.set()
    steps = leader.learner.steps(30)
    while leader.team.size == 2:
        next(steps)
    list(steps)
    one.end()
    assert leader.learner.is_recorded
    assert (leader.team.num_lost, one.follower.num_lost) == (0, 0)
    check_weights(leader, 38)


def test_followers_grow_with_the_network(make_leader):
    """The leader has another learner from then on, as the role makes one."""
    leader = make_leader()
    one = Following(leader, 1)
    leader.settle(2)
    list(leader.learner.steps(2))
    leader.learner.close()
    leader.team.stage = 1
    leader.learner = make_learner(CASE, leader.tape, leader.team)
    list(leader.learner.steps(2))
    leader.team.check_same()
    leader.team.close()
    one.end()
    assert one.stages == [0, 1]
    assert one.follower.num_steps == 4
    assert one.follower.num_lost == leader.team.num_lost == 0


def test_an_address_of_another_host_is_refused_in_one_line(make_leader):
    leader = make_leader(host="192.0.2.7")
    one = Following(leader, 1)
    with refused(UsageError, "listen (192.0.2.7)"):
        leader.settle(2)
    leader.team.close()
    one.end()


def test_a_lost_learner_ends_a_step_and_the_next_ones_are_made(make_leader):
    leader = make_leader()
    num_seen = 0

    def dies(connection):
        nonlocal num_seen
        num_seen += 1
        if num_seen == 3:
            connection.shutdown(socket.SHUT_RDWR)
            raise RunError("the third batch")

    one = Following(leader, 1)
    other = Following(leader, 2, dies)
    leader.settle(3)
    metrics = list(leader.learner.steps(10))
    other.end()
    assert leader.team.size == 2
    assert leader.learner.num_lost == leader.team.num_lost == 1
    # The batch is counted as drawn, and one that was drawn ahead, where there was one.
    assert leader.tape.num_drawn == 10
    assert len(metrics) == leader.learner.num_steps
    assert leader.learner.num_steps in (8, 9)
    leader.team.check_same()
    leader.team.close()
    one.end()
    assert one.follower.num_lost == 1


def test_a_learner_that_hangs_is_left_behind(make_leader):
    leader = make_leader(1.0)
    goes_on = threading.Event()
    hangs = Following(leader, 1, lambda connection: goes_on.wait(900) and None, 1.0)
    leader.settle(2)
    start_s = time.monotonic()
    list(leader.learner.steps(4))
    assert time.monotonic() - start_s < 600
    assert leader.team.size == 1
    assert leader.learner.num_lost == 1
    # The first batch and the one drawn ahead are counted as drawn.
    assert leader.learner.num_steps == 2
    assert leader.tape.num_drawn == 4
    goes_on.set()
    hangs.end()


@pytest.mark.parametrize("count", [1, 2])
def test_a_host_that_is_lost_is_not_waited_for(make_leader, count):
    """Its stream is known to be dead; torch's own connections say nothing for ever."""
    leader = make_leader(900.0)
    goes_on = threading.Event()
    left_s = []

    def is_lost(connection):
        left_s.append(time.monotonic())
        with contextlib.suppress(OSError):  # of a batch that was ordered ahead
            connection.shutdown(socket.SHUT_RDWR)
        goes_on.wait(900)

    lost = Following(leader, count, is_lost, 900.0)
    others = [Following(leader, index) for index in range(1, count)]
    leader.settle(1 + count)
    list(leader.learner.steps(4))
    # Two looks, and the meeting of those that are left.
    assert time.monotonic() - left_s[0] < 10
    assert leader.team.size == count
    assert leader.team.num_lost == 1
    assert any(f"learner {count} has ended" in line for line in leader.said)
    leader.team.check_same()
    leader.team.close()
    # Nor does it wait for the leader, nor do the others for it.
    goes_on.set()
    for one in [lost, *others]:
        one.end()
        assert one.follower.num_lost <= 1
    assert time.monotonic() - left_s[0] < 20


def test_who_never_agrees_is_not_waited_for(make_leader):
    leader = make_leader(0.5)
    connection = leader.connect(1)
    connection.sendall(b'{"is": "here"}\n{"is": "ready"}\n')
    while not leader.team.is_due:
        time.sleep(0.005)
    list(leader.learner.steps(3))
    assert leader.learner.num_steps == 3
    with connection, connection.makefile("rb") as stream:
        said = [json.loads(line)["do"] for line in stream]
    assert said[-1] == "bye"
    assert "group" in said
    check_weights(leader, 3)


def test_minibatches_before_the_one_that_is_lost_count(make_leader, monkeypatch):
    """Of a batch of several: they stay, and the counts say so."""
    leader = make_leader(900.0, "ppo")
    num_added = 0
    add_over = Shards.add_over

    def dies(self, group, *rest):
        nonlocal num_added
        num_added += group.rank
        if group.rank == 1 and num_added == 6:
            group.close()
            raise GroupLost("the sixth minibatch")
        return add_over(self, group, *rest)

    monkeypatch.setattr(Shards, "add_over", dies)
    other = Following(leader, 1)
    leader.settle(2)
    learner = leader.learner
    before = [one.detach().clone() for one in learner.net.parameters()]
    assert list(learner.steps(1)) == []
    assert learner.num_lost == 1
    assert learner.num_steps == 5
    assert learner.num_samples == BATCH - 7  # so many are too old
    after = learner.net.parameters()
    assert any((a != b).any() for a, b in zip(before, after, strict=True))
    assert "after 5 minibatches of its batch, which are kept" in leader.said[-1]
    # The other one has the same from the next group on.
    leader.settle(2)
    leader.team.check_same()
    leader.team.close()
    other.end()


def test_one_that_cannot_reach_the_group_is_asked_ever_more_seldom(
    make_leader, monkeypatch
):
    """As behind a firewall; the leader learns on, says so, and has it in the end."""
    tried_s = []
    is_open = threading.Event()

    def meets(*args, **settings):
        tried_s.append(time.monotonic())
        if not is_open.is_set():
            raise GroupLost("connection\nrefused")
        return TorchGroup(*args, **settings)

    monkeypatch.setattr("tengen.learners.follower.TorchGroup", meets)
    monkeypatch.setattr("tengen.learners.peer._FIRST_PAUSE_S", 0.5)
    leader = make_leader(900.0)
    other = Following(leader, 1, patience_s=900.0)
    start_s = time.monotonic()
    most_s = 0.0
    while len(tried_s) < 3:
        step_s = time.monotonic()
        list(leader.learner.steps(1))
        most_s = max(most_s, time.monotonic() - step_s)
    # Nobody waited for it: a meeting takes what its word takes.
    assert most_s < 600
    assert time.monotonic() - start_s < 600
    assert tried_s[1] - tried_s[0] >= 0.5
    assert tried_s[2] - tried_s[1] >= 1.0
    assert leader.said[:2] == [
        f"learner 1 did not connect to the others, and is retried in {pause} s: "
        "learner 1 reports: connection refused"
        for pause in ("0.5", "1")
    ]
    assert leader.team.size == 1
    is_open.set()
    leader.settle(2)
    list(leader.learner.steps(1))
    assert leader.team.num_lost == 0
    leader.team.close()
    other.end()


def test_a_stop_ends_the_wait_for_one_that_agrees_to_nothing(make_leader):
    leader = make_leader(900.0)
    connection = leader.connect(1)
    connection.sendall(b'{"is": "here"}\n{"is": "ready"}\n')
    while not leader.team.is_due:
        time.sleep(0.005)
    threading.Timer(0.5, leader.stop.set).start()
    start_s = time.monotonic()
    with connection:
        assert len(list(leader.learner.steps(100, leader.stop))) <= 2
    assert time.monotonic() - start_s < 600


def test_a_stop_ends_the_wait_for_one_that_hangs_in_a_step(make_leader):
    """Its stream lives, and so do torch's connections."""
    leader = make_leader(900.0)
    goes_on = threading.Event()
    hangs = Following(leader, 1, lambda connection: goes_on.wait(900) and None, 900.0)
    leader.settle(2)
    threading.Timer(0.5, leader.stop.set).start()
    start_s = time.monotonic()
    assert list(leader.learner.steps(100, leader.stop)) == []
    leader.team.close()
    leader.learner.state()
    assert time.monotonic() - start_s < 600
    assert leader.team.num_lost == 0
    goes_on.set()
    hangs.end()


def test_a_stop_ends_a_follower_that_waits_for_its_leader(make_leader):
    leader = make_leader(900.0)
    one = Following(leader, 1, patience_s=900.0)
    one.follower.leave_s = 1.0
    leader.settle(2)
    goes_on = threading.Event()
    draw = leader.tape.draw

    def waits(*numbers):
        goes_on.wait(900)
        return draw(*numbers)

    leader.tape.draw = waits
    work = threading.Thread(target=lambda: list(leader.learner.steps(1)))
    work.start()
    time.sleep(0.5)
    start_s = time.monotonic()
    one.stop.set()
    one.end()
    assert time.monotonic() - start_s < 600
    goes_on.set()
    work.join(900)
    assert not work.is_alive()


@pytest.mark.parametrize("index", [0, 3, -1])
def test_an_index_beyond_the_count_is_refused(make_leader, index):
    leader = make_leader()
    with refused(UsageError, f"index ({index})"):
        leader.connect(index)


@pytest.mark.parametrize("name", ["tengen", "torch", "python"])
def test_a_learner_of_another_version_is_refused(make_leader, name):
    leader = make_leader()
    message = greeting(1, "")
    message["versions"][name] = "0.0.9"
    with refused(UsageError, f"{name} (0.0.9)"):
        leader.client.open(message)
    # Nor is one that says nothing of it let in.
    del message["versions"]
    with pytest.raises(TengenError):
        leader.client.open(message)
    assert not leader.team.is_due


def test_other_weights_are_an_error(make_leader):
    leader = make_leader()
    one = Following(leader, 1)
    leader.settle(2)
    list(leader.learner.steps(1))
    with torch.no_grad():
        next(iter(leader.learner.net.parameters())).flatten()[0] += 1e-6
    thread_errors = []
    before = threading.excepthook
    threading.excepthook = thread_errors.append
    try:
        with refused(RunError, "weights (of learner 1"):
            leader.team.check_same()
        leader.team.close()
        one.end()
    finally:
        threading.excepthook = before
