"""A network that is easily told right from wrong, and a server of it."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import numpy as np

from tengen.inference.central import (
    INFERENCE,
    InferenceClient,
    InferenceServer,
    Place,
    Places,
    ask_model,
    connect_rows,
    serve_rows,
)
from tengen.tensors import Signature, TensorSpec
from tengen.transport import Client, HostFolder, NetDoor, Server, fingerprint_of

SIGNATURE = Signature(
    inputs={
        "image": TensorSpec(dtype="uint8", shape=(3, 5)),
        "speed": TensorSpec(shape=(2,)),
    },
    outputs={"policy": TensorSpec(shape=(4,)), "value": TensorSpec()},
    state={"memory": TensorSpec(shape=(2,))},
)


class CountingNet:
    """Its value is the sum of a row; its policy says scale and memory, which adds up.

    Attributes:
        sizes: Rows of each batch.
        gate: Set: batches are evaluated; clear: they wait.
        error: Raised by the next batch.
    """

    name, version, precision, batch_shape = "counting", "1", "fp32", "dynamic"
    signature = SIGNATURE

    def __init__(self, scale=1.0):
        self.sizes: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self.error: Exception | None = None
        self._scale = scale

    def bind(self, inputs, outputs, state):
        return _Counter(self, self._scale, inputs, outputs, state)


class _Counter:
    def __init__(self, net, scale, inputs, outputs, state):
        self._net, self._scale = net, scale
        self._inputs, self._outputs, self._state = inputs, outputs, state

    def run(self, num_rows):
        self._net.gate.wait(900)
        if self._net.error is not None:
            raise self._net.error
        self._net.sizes.append(num_rows)
        rows = slice(0, num_rows)
        memory = self._state["memory"][rows]
        memory += self._inputs["speed"][rows]
        self._outputs["policy"][rows, 0] = self._scale
        self._outputs["policy"][rows, 1:3] = memory
        self._outputs["value"][rows] = self._scale * self._inputs["image"][rows].sum(
            axis=(1, 2), dtype=np.float32
        )


_FILES = Path(__file__).parents[2] / "store"
# Of localhost and 127.0.0.1, vouched for by itself.
CERTIFICATE = _FILES / "tls_certificate.pem"
KEY = _FILES / "tls_key.pem"


@contextlib.contextmanager
def serving(folder, net=None, tls=False, **options):
    """Serves a network in a folder and at an address of this host."""
    files = {"certificate_file": CERTIFICATE, "key_file": KEY} if tls else {}
    server = InferenceServer(SIGNATURE, **{"max_rows": 64, **options})
    place = HostFolder("inference", folder)
    service = serve_rows(server, SIGNATURE)
    near = Server(place.listen(), service)
    far = Server(NetDoor(listen="127.0.0.1:0", **files).open(INFERENCE), service)
    thread = threading.Thread(target=_run, args=(server,))
    thread.start()
    if net is not None:
        server.set_model(net, version=10, number=1)
    try:
        yield server, far.address
    finally:
        near.close()
        far.close()
        server.stop()
        thread.join(900)
        assert not thread.is_alive()
        place.remove()


def _run(server):
    with contextlib.suppress(ValueError):  # what a test's network raised
        server.run()


def client_of(
    address,
    num_rows,
    *,
    stop=None,
    patience_s=20.0,
    signature=SIGNATURE,
    connect=None,
    tls=False,
):
    """Returns a client of N rows."""
    place = place_of(address, num_rows, signature=signature, tls=tls)
    if connect is not None:
        place = place._replace(connect=connect)
    return InferenceClient(
        Places([place]), signature, num_rows, stop or threading.Event(), patience_s
    )


def place_of(address, num_rows, *, signature=SIGNATURE, tls=False):
    """Returns a server as a client of N rows reaches it."""
    fingerprint = fingerprint_of(CERTIFICATE) if tls else None
    asked = Client(INFERENCE, address, fingerprint=fingerprint)
    return Place(
        connect_rows(asked, signature, num_rows),
        lambda patience_s: ask_model(asked, patience_s),
    )


def fill(client, seed):
    """Writes rows, and returns the values that are right for them."""
    rng = np.random.default_rng(seed)
    arrays = client.arrays
    arrays.inputs["image"][:] = rng.integers(0, 255, arrays.inputs["image"].shape)
    arrays.inputs["speed"][:] = rng.integers(1, 9, arrays.inputs["speed"].shape)
    return arrays.inputs["image"].sum(axis=(1, 2), dtype=np.float32)
