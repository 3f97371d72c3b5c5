"""Central inference: rows get their own answers, whoever dies or comes late."""

import contextlib
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tengen.errors import RunError, UsageError
from tengen.inference.central import (
    INFERENCE,
    InferenceServer,
    Interrupted,
    connect_rows,
    serve_rows,
)
from tengen.inference.central.messages import EVALUATE, REQUEST, Request
from tengen.tensors import Signature, TensorSpec
from tengen.transport import Client, NetDoor, Server, fingerprint_of
from tests.refusals import refused
from tests.unit.inference.central.counting import (
    CERTIFICATE,
    SIGNATURE,
    CountingNet,
    client_of,
    fill,
    serving,
)


@pytest.fixture(params=["memory", "stream", "encrypted"])
def way(request):
    return str(request.param)


@pytest.fixture
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("i") / "s"


def place(way, folder, address):
    return folder if way == "memory" else address


def test_rows_are_answered_and_memory_adds_up(way, folder):
    tls = way == "encrypted"
    with serving(folder, CountingNet(), tls) as (server, address):
        client = client_of(place(way, folder, address), 5, tls=tls)
        arrays = client.arrays
        expected = np.zeros((5, 2), np.float32)
        arrays.is_first[:] = True
        for step in range(6):
            values = fill(client, step)
            expected += arrays.inputs["speed"]
            arrays.wants_state = step % 2 == 1
            client.run(5)
            assert np.array_equal(arrays.outputs["value"], values)
            assert np.array_equal(arrays.outputs["policy"][:, 1:3], expected)
            assert (arrays.version, client.model) == (10, 1)
            if arrays.wants_state:
                assert np.array_equal(arrays.state["memory"], expected)
            # Episodes of two rows begin with the next step.
            arrays.is_first[:] = [0, step == 2, 0, step == 3, 0]
            expected[arrays.is_first] = 0
        assert server.stats.num_evaluations == 30
        client.close()


def test_rows_of_several_actors_are_one_batch(folder):
    net = CountingNet()
    with serving(folder, net, min_rows=12, max_wait_s=20.0) as (_, address):
        sizes = [4, 1, 7]
        clients = [
            client_of(place(way, folder, address), size)
            for size, way in zip(sizes, ("memory", "stream", "memory"), strict=True)
        ]
        with ThreadPoolExecutor(3) as pool:
            for step in range(5):
                values = [fill(one, 3 * step + i) for i, one in enumerate(clients)]
                before = [one.arrays.outputs["policy"].copy() for one in clients]
                list(pool.map(lambda one: one.run(one.arrays.num_rows), clients))
                for one, right, earlier in zip(clients, values, before, strict=True):
                    arrays = one.arrays
                    assert np.array_equal(arrays.outputs["value"], right)
                    grown = arrays.outputs["policy"] - earlier
                    assert np.array_equal(grown[:, 1:3], arrays.inputs["speed"])
        assert net.sizes == [12] * 5
        for one in clients:
            one.close()


def test_a_batch_has_no_more_rows_than_it_may(folder):
    net = CountingNet()
    net.gate.clear()
    with serving(folder, net, max_rows=8) as (_, _address):
        clients = [client_of(folder, 3) for _ in range(5)]
        with ThreadPoolExecutor(5) as pool:
            asked = [pool.submit(one.run, 3) for one in clients]
            time.sleep(0.2)
            net.gate.set()
            for one in asked:
                one.result(900)
        assert sum(net.sizes) == 15
        assert max(net.sizes) == 6


def test_few_rows_do_not_wait_for_ever(folder):
    with serving(folder, CountingNet(), min_rows=64, max_wait_s=0.05) as (_, _address):
        client = client_of(folder, 2)
        values = fill(client, 0)
        client.run(2)
        assert np.array_equal(client.arrays.outputs["value"], values)


def test_nobody_is_answered_before_there_is_a_model(folder):
    with serving(folder) as (server, _address), ThreadPoolExecutor(1) as pool:
        client = client_of(folder, 2)
        asked = pool.submit(client.run, 2)
        time.sleep(0.1)
        assert not asked.done()
        server.set_model(CountingNet(3.0), version=5, number=7)
        asked.result(900)
        assert client.arrays.outputs["policy"][0, 0] == 3.0
        assert (client.arrays.version, client.model) == (5, 7)
        server.set_model(CountingNet(4.0), version=6, number=8)
        while client.model == 7:
            client.run(2)
        assert client.arrays.outputs["policy"][0, 0] == 4.0


def test_the_memory_outlives_a_change_of_the_model(folder):
    with serving(folder, CountingNet()) as (server, _address):
        client = client_of(folder, 2)
        client.arrays.inputs["speed"][:] = 1
        for version in range(11, 20):
            client.run(2)
            server.set_model(CountingNet(), version=version, number=version)
        assert client.arrays.outputs["policy"][0, 1] == 9


def test_an_actor_that_dies_in_a_request_holds_nobody_up(way, folder):
    net = CountingNet()
    with serving(folder, net) as (server, address):
        where = place(way, folder, address)
        client = client_of(where, 2)
        # One dies in the middle of a request, one with its request pending.
        stream, _ = connect_rows(Client(INFERENCE, where), SIGNATURE, 4)()
        stream.sendall(REQUEST.pack(*Request(EVALUATE, 0, 1))[:5])
        net.gate.clear()
        other, _ = connect_rows(Client(INFERENCE, folder), SIGNATURE, 4)()
        other.sendall(REQUEST.pack(*Request(EVALUATE, 0, 1)))
        time.sleep(0.1)
        stream.close()
        other.close()
        net.gate.set()
        for step in range(3):
            values = fill(client, step)
            client.run(2)
            assert np.array_equal(client.arrays.outputs["value"], values)
        _until(lambda: server.num_sessions == 1)
        assert server.stats.num_lost == 2


def test_an_actor_comes_back_while_its_old_rows_are_in_a_batch(way, folder):
    """SEED RL's batch then had the same copies twice, and failed all who were in it."""
    net = CountingNet()
    with serving(folder, net) as (server, address), ThreadPoolExecutor(2) as pool:
        where = place(way, folder, address)
        other = client_of(where, 3)
        values = fill(other, 1)
        net.gate.clear()
        stream, _ = connect_rows(Client(INFERENCE, folder), SIGNATURE, 2)()
        stream.sendall(REQUEST.pack(*Request(EVALUATE, 0, 1)))
        asked = pool.submit(other.run, 3)
        time.sleep(0.1)
        stream.close()

        def come_back():
            again = client_of(where, 2)
            again.arrays.inputs["speed"][:] = 1
            again.run(2)
            found = again.arrays.outputs["policy"][:, 1:3].copy()
            again.close()
            return found

        memory = pool.submit(come_back)
        time.sleep(0.1)
        net.gate.set()
        asked.result(900)
        assert np.array_equal(other.arrays.outputs["value"], values)
        # It has nothing of the memory that the dead one's rows had.
        assert (memory.result(900) == 1).all()
        _until(lambda: server.num_sessions == 1)


@pytest.mark.parametrize(
    "bytes_",
    [b"\xff" * 64, struct.pack("<IIQ", 3, 0, 0), b"{}\n" * 40],
    ids=["ones", "kind", "lines"],
)
def test_what_is_no_request_ends_its_own_session(bytes_, folder):
    with serving(folder, CountingNet()) as (server, _address):
        client = client_of(folder, 2)
        stream, _ = connect_rows(Client(INFERENCE, folder), SIGNATURE, 4)()
        stream.sendall(bytes_)
        stream.settimeout(20)
        with contextlib.suppress(ConnectionResetError):
            assert stream.recv(1) == b""
        client.run(2)
        assert server.stats.num_lost == 1


def test_an_actor_that_takes_no_answers_holds_nobody_up(folder):
    """Its answer is larger than what a socket takes, and waits there alone."""
    wide = Signature(
        inputs={"x": TensorSpec()}, outputs={"y": TensorSpec(shape=(2048,))}
    )

    class Wide(CountingNet):
        signature = wide

        def bind(self, inputs, outputs, state):
            class Runner:
                def run(self, num_rows):
                    outputs["y"][:num_rows] = inputs["x"][:num_rows, None]

            return Runner()

    server = InferenceServer(wide, max_rows=4096)
    listener = NetDoor(listen="127.0.0.1:0").open(INFERENCE)
    door = Server(listener, serve_rows(server, wide))
    thread = threading.Thread(target=server.run)
    thread.start()
    server.set_model(Wide(), version=0, number=0)
    try:
        slow, _ = connect_rows(Client(INFERENCE, door.address), wide, 4096)()
        slow.sendall(REQUEST.pack(*Request(EVALUATE, 0, 1)))
        slow.sendall(bytes(4096) + np.arange(4096, dtype=np.float32).tobytes())
        quick = client_of(door.address, 3, signature=wide)
        for step in range(5):
            quick.arrays.inputs["x"][:] = step
            quick.run(3)
            assert (quick.arrays.outputs["y"] == step).all()
        # It takes the answer at last, and it is whole.
        head = _take(slow, 32)
        assert struct.unpack("<IIQqq", head)[2] == 1
        answer = np.frombuffer(_take(slow, 4096 * 2048 * 4), np.float32)
        assert (answer.reshape(4096, 2048) == np.arange(4096)[:, None]).all()
        slow.close()
        quick.close()
    finally:
        door.close()
        server.stop()
        thread.join(900)


def test_an_actor_goes_on_with_the_next_server(way, folder):
    held = {}

    tls = way == "encrypted"
    fingerprint = fingerprint_of(CERTIFICATE) if tls else None

    def connect():
        client = Client(INFERENCE, held["at"], fingerprint=fingerprint)
        return connect_rows(client, SIGNATURE, 3)()

    with serving(folder, CountingNet(), tls) as (_, address):
        held["at"] = place(way, folder, address)
        client = client_of(held["at"], 3, connect=connect)
        client.run(3)
    with serving(folder, CountingNet(2.0), tls) as (_, address):
        held["at"] = place(way, folder, address)
        values = fill(client, 1)
        client.run(3)
        assert np.array_equal(client.arrays.outputs["value"], 2 * values)
        # The memory of the rows was lost with the first server.
        memory = client.arrays.outputs["policy"][:, 1:3]
        assert np.array_equal(memory, client.arrays.inputs["speed"])
        assert client.num_lost == 1


def test_a_server_that_does_not_come_back_is_one_line(folder):
    with serving(folder, CountingNet()):
        client = client_of(folder, 3, patience_s=0.5)
        client.run(3)
    with refused(RunError, "inference (lost for 0.5 s)") as lost:
        client.run(3)
    assert "\n" not in str(lost.value)


def test_a_silent_server_is_one_line(folder):
    with serving(folder):  # it has no model
        client = client_of(folder, 3, patience_s=0.5)
        with refused(RunError, "silent for 0.5 s"):
            client.run(3)


def test_a_stop_ends_the_wait(folder):
    stop = threading.Event()
    with serving(folder), ThreadPoolExecutor(1) as pool:
        client = client_of(folder, 3, stop=stop)
        asked = pool.submit(client.run, 3)
        stop.set()
        with pytest.raises(Interrupted):
            asked.result(900)


def test_a_network_that_fails_is_told_to_every_actor(way, folder):
    net, tls = CountingNet(), way == "encrypted"
    with serving(folder, net, tls) as (_, address):
        client = client_of(place(way, folder, address), 3, tls=tls)
        client.run(3)
        net.error = ValueError("no memory for the batch")
        with refused(RunError, "no memory"):
            client.run(3)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"outputs": {"policy": TensorSpec(shape=(5,))}}, "signature (outputs policy)"),
        (
            {"inputs": {"speed": TensorSpec(shape=(2,)), "image": TensorSpec()}},
            "signature (inputs speed, image)",
        ),
        ({"state": {}}, "signature (state none)"),
    ],
)
def test_a_session_of_another_network_is_refused(change, line, folder):
    parts = {
        "inputs": SIGNATURE.inputs,
        "outputs": SIGNATURE.outputs,
        "state": SIGNATURE.state,
    }
    with serving(folder, CountingNet()), pytest.raises(UsageError) as refused:
        client_of(folder, 3, signature=Signature(**{**parts, **change}))
    assert line in str(refused.value)


@pytest.mark.parametrize("num_rows", [0, 65, 5000, True, "3"])
def test_rows_that_no_batch_has_are_refused(num_rows, folder):
    with serving(folder, CountingNet()), refused(UsageError, "num_rows"):
        client_of(folder, num_rows)


def _take(stream, num_bytes):
    stream.settimeout(20)
    taken = bytearray()
    while len(taken) < num_bytes:
        piece = stream.recv(num_bytes - len(taken))
        assert piece
        taken += piece
    return bytes(taken)


def _until(happened):
    end_s = time.monotonic() + 600.0
    while not happened():
        assert time.monotonic() < end_s, "it never happened"
        time.sleep(0.01)
