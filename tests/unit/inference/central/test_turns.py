"""Two ports of one thread: one steps while the other is answered."""

from __future__ import annotations

import threading

from tengen.inference import DriveStats
from tengen.inference.central import Asker, drive_in_turns
from tests.refusals import refused
from tests.unit.inference.central.counting import CountingNet, client_of, fill, serving


class Port:
    """Asks for its rows ``turns`` times ``steps``, and notes what it is told.

    One of a group is sent its steps by ``done``, and waits for them in ``next``.
    """

    def __init__(self, name, client, steps, log, is_group=False):
        self.name, self.client, self.log = name, client, log
        self.is_stepping = self._is_group = is_group
        self._steps = steps
        self._left = 0
        self.num_turns = 0
        self.num_done = 0
        self.wrong = 0
        self.during: threading.Event | None = None

    def begin(self):
        self._left = self._steps
        self.num_turns += 1

    def next(self):
        if self.is_stepping:
            self.log.append(f"receives {self.name}")
            self.is_stepping = False
        if self._left == 0:
            return 0
        self._values = fill(self.client, 1000 * ord(self.name) + self.num_done)
        self.log.append(f"asks {self.name}")
        return self.client.arrays.num_rows

    def done(self):
        self._left -= 1
        self.num_done += 1
        self.log.append(f"{'sends' if self._is_group else 'steps'} {self.name}")
        self.is_stepping = self._is_group
        answers = self.client.arrays.outputs["value"]
        self.wrong += int((answers != self._values).sum())
        if self.during is not None:
            # The other's answers are made while this one steps.
            assert self.during.wait(900)


def ports_of(path, sizes, steps, is_group=False):
    log = []
    return [Port(n, client_of(path, k), steps, log, is_group) for n, k in sizes.items()]


def askers(ports):
    return [Asker(port, port.client, port.begin) for port in ports]


def test_each_asks_again_before_the_other_steps(tmp_path):
    with serving(tmp_path, CountingNet()):
        ports = ports_of(tmp_path, {"a": 3, "b": 2}, steps=2)
        stats = DriveStats()
        drive_in_turns(askers(ports), lambda: True, stats)
        for port in ports:
            port.client.close()
    assert " ".join(ports[0].log) == (
        "asks a asks b steps a asks a steps b asks b steps a steps b"
    )
    assert [port.wrong for port in ports] == [0, 0]
    assert (stats.num_evaluations, stats.num_batches) == (10, 4)


def test_one_of_two_groups_always_steps(tmp_path):
    with serving(tmp_path, CountingNet()):
        ports = ports_of(tmp_path, {"a": 2, "b": 2}, steps=2, is_group=True)
        drive_in_turns(askers(ports), lambda: True, DriveStats())
        first = " ".join(ports[0].log)
        ports[0].log.clear()
        # What was left stepping is received from when the other has been sent to.
        drive_in_turns(askers(ports), lambda: True, DriveStats())
        for port in ports:
            port.client.close()
    assert first == (
        "receives a asks a sends a receives b asks b sends b "
        "receives a asks a sends a receives b asks b sends b receives a"
    )
    assert " ".join(ports[0].log) == (
        "asks a sends a receives b asks b sends b "
        "receives a asks a sends a receives b asks b sends b receives a"
    )
    assert [port.wrong for port in ports] == [0, 0]


def test_one_steps_while_the_other_is_answered(tmp_path):
    net = CountingNet()
    answered = threading.Event()
    with serving(tmp_path, net):
        first, second = ports = ports_of(tmp_path, {"a": 1, "b": 2}, steps=1)
        first.during = answered

        def watch():
            while sum(net.sizes) < 3:
                answered.wait(0.005)
            answered.set()

        threading.Thread(target=watch).start()
        drive_in_turns(askers(ports), lambda: True, DriveStats())
        for port in ports:
            port.client.close()
    assert (first.num_done, second.num_done) == (1, 1)


def test_a_port_begins_turns_until_all_are_over(tmp_path):
    with serving(tmp_path, CountingNet()):
        ports = ports_of(tmp_path, {"a": 3, "b": 2}, steps=2)
        drive_in_turns(
            askers(ports), lambda: ports[0].num_done >= 6, stats := DriveStats()
        )
        for port in ports:
            port.client.close()
    # The second one's turn of the same time goes on to its end.
    assert [port.num_done for port in ports] == [6, 6]
    assert [port.num_turns for port in ports] == [3, 3]
    assert stats.num_batches == 12
    assert [port.wrong for port in ports] == [0, 0]


def test_a_lost_server_is_asked_again_by_each(tmp_path):
    with serving(tmp_path, CountingNet()):
        ports = ports_of(tmp_path, {"a": 3, "b": 2}, steps=1)
        for port in ports:
            port.begin()
            port.next()
    # Both had answers of the first server to come when it ended.
    with serving(tmp_path, CountingNet()):
        for port in ports:
            port.client.ask()
        for port in ports:
            port.client.wait()
            port.done()
    assert [port.wrong for port in ports] == [0, 0]
    assert [port.client.num_lost for port in ports] == [1, 1]
    for port in ports:
        port.client.close()


def test_one_port_alone_waits_for_its_answers(tmp_path):
    with serving(tmp_path, CountingNet()):
        (port,) = ports_of(tmp_path, {"a": 4}, steps=3)
        drive_in_turns(askers([port]), lambda: True, DriveStats())
        port.client.close()
    assert (port.num_done, port.wrong) == (3, 0)


def test_what_a_port_raises_is_raised(tmp_path):
    with serving(tmp_path, CountingNet()):
        ports = ports_of(tmp_path, {"a": 1, "b": 1}, steps=1)
        ports[1].done = lambda: (_ for _ in ()).throw(ValueError("broken"))
        with refused(ValueError, "broken"):
            drive_in_turns(askers(ports), lambda: True, DriveStats())
        for port in ports:
            port.client.close()
