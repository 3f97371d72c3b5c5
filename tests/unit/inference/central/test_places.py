"""Which server answers a group of copies: spread evenly, left where it is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tengen.errors import RunError
from tengen.inference.central import InferenceClient, Place, Places, servers_in_order
from tests.unit.inference.central.counting import (
    SIGNATURE,
    CountingNet,
    fill,
    place_of,
    serving,
)


@pytest.mark.parametrize("num_servers", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("num_groups", [1, 4, 7, 60, 1024])
def test_groups_are_spread_evenly_and_so_are_those_of_a_lost_server(
    num_servers, num_groups
):
    orders = [servers_in_order(number, num_servers) for number in range(num_groups)]
    assert all(sorted(order) == list(range(num_servers)) for order in orders)

    def check(servers, known):
        loads = [Counter(servers)[server] for server in known]
        assert max(loads) - min(loads) <= 1

    check([order[0] for order in orders], list(range(num_servers)))
    if num_servers > 1:
        moved = [order[1] for order in orders if order[0] == 0]
        check(moved, list(range(1, num_servers)))


class Fake:
    """A server that is there or not, and its clock."""

    def __init__(self):
        self.is_there = True
        self.hangs = False
        self.model: int = 3
        self.num_asked = 0

    def place(self):
        return Place(self.connect, self.ask)

    def connect(self):
        if not self.is_there or self.hangs:
            raise RunError("nobody answers")
        return self

    def ask(self, patience_s):
        self.num_asked += 1
        return self.model if self.is_there and not self.hangs else None


class Clock:
    now_s = 1000.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def fakes():
    return [Fake(), Fake(), Fake()]


def places_of(fakes, clock, waits=lambda: None):
    return Places([fake.place() for fake in fakes], waits, clock)


def test_an_actor_that_begins_waits_a_little_for_its_home(fakes, clock):
    waits = []
    places = places_of(fakes, clock, lambda: waits.append(1))
    fakes[0].is_there = False
    for _ in range(2):
        with pytest.raises(RunError):
            places.connect()
        clock.now_s += 2.4
    assert waits == []  # others may let it in
    clock.now_s += 0.3
    assert places.connect() is fakes[1]
    for fake in fakes:
        fake.is_there = False
    places.lose()
    with pytest.raises(RunError):
        places.connect()
    assert waits == [1]


def test_a_lost_server_is_left_for_the_next_and_asked_behind_it(fakes, clock):
    places = places_of(fakes, clock)
    assert places.connect() is fakes[0]
    places.lose()
    assert places.connect() is fakes[1]  # though the home answers again
    places.lose()
    assert places.connect() is fakes[0]
    fakes[0].is_there = fakes[2].is_there = False
    places.lose()
    assert places.connect() is fakes[1]


def test_it_goes_home_once_there_is_a_model(fakes, clock):
    places = places_of(fakes, clock)
    places.connect()
    fakes[0].is_there = False
    places.lose()
    assert places.connect() is fakes[1]
    assert places.return_home() is None
    clock.now_s += 9.9
    assert places.return_home() is None
    assert fakes[0].num_asked == 0  # not looked for in vain all the time
    fakes[0].is_there, fakes[0].model = True, -1
    clock.now_s += 0.2
    assert places.return_home() is None
    assert fakes[0].num_asked == 1
    fakes[0].model = 0
    clock.now_s += 19.9
    assert places.return_home() is None
    clock.now_s += 0.2
    assert places.return_home() is fakes[0]
    clock.now_s += 1000
    assert places.return_home() is None  # it is there


def test_a_home_that_comes_and_goes_moves_nobody_to_and_fro(fakes, clock):
    places = places_of(fakes, clock)
    places.connect()
    begun_s, num_moves = clock.now_s, 0
    while clock.now_s < begun_s + 3600:
        places.lose()  # the moment it is there
        assert places.connect() is not fakes[0]
        num_moves += 1
        while places.return_home() is None:
            clock.now_s += 1
        num_moves += 1
    # 10 + 20 + 40 + ... + 320 + 320 s: every server that is lost each second would
    # else have moved it thousands of times.
    assert num_moves <= 2 * (6 + 3600 / 320)
    # Once it has served for long, it is come back to soon.
    clock.now_s += 400
    places.lose()
    places.connect()
    clock.now_s += 10.1
    assert places.return_home() is fakes[0]


def test_a_server_that_is_busy_is_not_left_and_one_that_hangs_is(fakes, clock):
    places = places_of(fakes, clock)
    places.connect()
    places.hears()
    clock.now_s += 1.9
    assert not places.is_silent()
    assert fakes[0].num_asked == 0
    for _ in range(100):  # a batch of minutes
        clock.now_s += 2.1
        assert not places.is_silent()
    assert fakes[0].num_asked == 100
    fakes[0].hangs = True
    assert not places.is_silent()
    clock.now_s += 2.1
    assert places.is_silent()


def test_where_all_are_slow_they_are_given_more_time(fakes, clock):
    patience = []

    def never(patience_s):
        patience.append(patience_s)

    places = Places([fake.place()._replace(model=never) for fake in fakes], clock=clock)
    for _ in range(6):
        places.connect()
        clock.now_s += 5
        assert places.is_silent()
        places.lose()
    assert patience == [3, 6, 12, 24, 48, 48]


def test_one_server_alone_is_waited_for(clock):
    fake = Fake()
    places = places_of([fake], clock)
    places.connect()
    fake.hangs = True
    clock.now_s += 100
    assert not places.is_silent()
    assert places.return_home() is None
    assert fake.num_asked == 0


class Hasty(Places):
    quiet_s = 0.3
    pause_s = 0.2


def client_of(*where, patience_s=20.0, kind=Places):
    return InferenceClient(
        kind([place_of(one, 3) for one in where]),
        SIGNATURE,
        3,
        threading.Event(),
        patience_s,
    )


@pytest.fixture
def folders(tmp_path_factory):
    return [tmp_path_factory.mktemp("i") / name for name in "ab"]


@pytest.mark.parametrize("is_far", [False, True], ids=["memory", "stream"])
def test_rows_go_to_another_server_without_memory_and_come_home(folders, is_far):
    with contextlib.ExitStack() as others:
        _, other = others.enter_context(serving(folders[1], CountingNet(2.0)))
        with serving(folders[0], CountingNet()) as (_, address):
            home = address if is_far else folders[0]
            client = client_of(home, other if is_far else folders[1], kind=Hasty)
            arrays = client.arrays
            for _ in range(2):
                fill(client, 1)
                client.run(3)
            assert arrays.outputs["policy"][0, 0] == 1.0
            assert arrays.num_moves == 0
        # The request that finds it lost is answered by the other one.
        values = fill(client, 2)
        client.run(3)
        assert np.array_equal(arrays.outputs["value"], 2 * values)
        memory = arrays.inputs["speed"].copy()
        assert np.array_equal(arrays.outputs["policy"][:, 1:3], memory)
        assert (arrays.num_moves, client.num_lost) == (1, 1)
        # The state is told without having been asked for: see ``_enter``.
        assert np.array_equal(arrays.state["memory"], memory)
        if is_far:
            client.close()
            return  # the next server has another port
        with serving(folders[0], CountingNet(3.0)):
            until = time.monotonic() + 600.0
            while arrays.num_moves == 1 and time.monotonic() < until:
                values = fill(client, 3)
                arrays.wants_state = False
                client.run(3)
            assert np.array_equal(arrays.outputs["value"], 3 * values)
            assert np.array_equal(arrays.state["memory"], arrays.inputs["speed"])
            assert (arrays.num_moves, client.num_lost) == (2, 1)
            client.close()


HANGING = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.unit.inference.central.counting import CountingNet, serving
with serving(Path(sys.argv[2]), CountingNet()):
    print("serves", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def server_process(folder):
    root = str(Path(__file__).parents[4])
    with subprocess.Popen(
        [sys.executable, "-c", HANGING, root, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "serves\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_server_that_hangs_is_left_and_a_long_batch_is_waited_for(folders):
    slow = CountingNet(2.0)
    with serving(folders[1], slow), server_process(folders[0]) as process:
        client = client_of(*folders, kind=Hasty)
        fill(client, 1)
        client.run(3)
        os.kill(process.pid, signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)  # its threads go on till it has stopped
        values = fill(client, 2)
        client.run(3)
        assert np.array_equal(client.arrays.outputs["value"], 2 * values)
        assert (client.arrays.num_moves, client.num_lost) == (1, 1)
        # Five times as long as after which it is asked whether it is alive.
        slow.gate.clear()
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(client.run, 3)
            time.sleep(1.5)
            slow.gate.set()
            asked.result(900)
        assert (client.arrays.num_moves, client.num_lost) == (1, 1)
        client.close()


def test_a_network_that_fails_on_one_server_is_asked_on_another(folders):
    broken = CountingNet()
    with serving(folders[1], CountingNet(2.0)), serving(folders[0], broken):
        client = client_of(*folders)
        client.run(3)
        broken.error = ValueError("no memory for the batch")
        values = fill(client, 4)
        client.run(3)
        assert np.array_equal(client.arrays.outputs["value"], 2 * values)
        client.close()
