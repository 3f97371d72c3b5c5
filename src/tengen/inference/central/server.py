"""The central inference server, which batches the rows of many actors for one model.

The server evaluates a batch when the device is idle, and ``min_rows`` rows are waiting
or the oldest request has waited ``max_wait_s``. If an actor dies, its rows are dropped,
and no batch waits for them. The core handles the sessions
(``core/inference/row_server.h``); the code in this module runs once per batch.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.config import from_dict, to_dict
from tengen.errors import RunError, UsageError
from tengen.inference.backend import Backend, Runner
from tengen.inference.central.messages import Stream, make_shared
from tengen.inference.row_arrays import RowArrays
from tengen.tensors import Signature, TensorSpec
from tengen.transport import Client, Dialect, Message, Service, is_net

INFERENCE = Dialect("inference", version=3)
_ROWS = "rows"
_MODEL = "model"

# Maximum number of rows of all open sessions, as a multiple of max_rows. It allows for
# sessions of dead actors, which stay open until the server notices the death.
_MOST_BATCHES = 8
# If a session's rows have fewer bytes, copying is faster than evaluating in place.
_LEAST_IN_PLACE_BYTES = 65536
# Maximum number of cached runners that evaluate a session's rows in place.
_MOST_IN_PLACE = 64


@dataclass(frozen=True)
class ServerStats:
    """Counters of an inference server since its start."""

    num_batches: int
    """Number of batches evaluated by the network."""
    num_evaluations: int
    """Number of rows evaluated by the network."""
    inference_s: float
    """Seconds spent evaluating the network."""
    copy_s: float
    """Seconds spent copying the rows of several actors, and their outputs."""
    wait_s: float
    """Seconds during which no request was pending."""
    num_lost: int
    """Number of sessions that ended while the server was running."""


@dataclass(frozen=True)
class _Model:
    backend: Backend
    version: int
    number: int


class InferenceServer:
    """Serves inference sessions. One thread calls ``run``; the rest is thread-safe.

    Args:
        signature: The network's signature, including its state.
        max_rows: Maximum number of rows in a batch and in a session.
        min_rows: Number of rows for which a batch waits, 1 to ``max_rows``.
        max_wait_s: Maximum time that a request waits for ``min_rows``, at least 0.

    Attributes:
        max_rows: The argument ``max_rows``.
    """

    def __init__(
        self,
        signature: Signature,
        *,
        max_rows: int,
        min_rows: int = 1,
        max_wait_s: float = 0.002,
    ) -> None:
        self.max_rows = max_rows
        self._signature = signature
        self._rows = _core.RowServer(
            *(
                [spec.num_bytes for spec in specs.values()]
                for specs in (signature.inputs, signature.outputs, signature.state)
            ),
            max_rows=max_rows,
            min_rows=min_rows,
            max_wait_s=max_wait_s,
            most_rows=_MOST_BATCHES * max_rows,
            least_bytes=_LEAST_IN_PLACE_BYTES,
        )
        self._model: _Model | None = None
        # Runners by session ID (0 for batches of several sessions), used only by run.
        self._runners: dict[int, tuple[Backend, Runner]] = {}

    def add(self, stream: Stream, num_rows: int) -> None:
        """Adds a session with an actor.

        Args:
            stream: The stream to the actor; the server takes ownership.
            num_rows: Number N of the actor's rows, 1 to ``max_rows``.

        Raises:
            RunError: There is too little memory for the rows, or the server has ended.
        """
        with stream.connection:
            memory = -1
            if stream.is_shared:
                memory = make_shared(RowArrays.num_bytes(self._signature, num_rows))
            try:
                self._rows.add(stream.connection.detach(), memory, num_rows)
            except _core.CoreError as error:
                raise RunError(str(error)) from error

    def set_model(self, backend: Backend, version: int, number: int) -> None:
        """Sets the model that evaluates the next batches.

        Args:
            backend: The model, opened with the outputs of the signature.
            version: The model's version, counted in learner steps.
            number: The number under which the model is published.
        """
        self._model = _Model(backend, version, number)
        self._rows.start()

    @property
    def model(self) -> int:
        """The number of the model that evaluates batches; -1 if there is none yet."""
        model = self._model
        return -1 if model is None else model.number

    @property
    def num_sessions(self) -> int:
        """Number of sessions with actors that are open or being opened."""
        return self._rows.num_sessions

    @property
    def stats(self) -> ServerStats:
        """The server's counters since its start."""
        stats = self._rows.stats
        return ServerStats(
            num_batches=stats.num_batches,
            num_evaluations=stats.num_rows,
            inference_s=stats.device_s,
            copy_s=stats.copy_s,
            wait_s=stats.wait_s,
            num_lost=stats.num_lost,
        )

    def stop(self) -> None:
        """Ends ``run`` after the current batch."""
        self._rows.stop()

    def run(self) -> None:
        """Evaluates requests until ``stop`` is called, then ends all sessions. Blocks.

        Raises:
            Exception: Any exception of the backend; all sessions receive its message.
        """
        try:
            while num_rows := self._rows.next():
                model = self._model
                assert model is not None  # because next() waits for set_model
                self._runner(model.backend).run(num_rows)
                self._rows.done(model.version, model.number)
        except Exception as error:
            self._rows.refuse(f"central inference failed, {error}")
            raise
        finally:
            self._runners.clear()
            self._rows.close()

    def _runner(self, backend: Backend) -> Runner:
        """Returns a runner bound to the memory of the current batch."""
        session = self._rows.alone
        bound = self._runners.get(session)
        if bound is None or bound[0] is not backend:
            if len(self._runners) > _MOST_IN_PLACE:
                self._runners.clear()  # also removes runners of ended sessions
            arrays = _named(self._signature, self._rows.arrays())
            bound = self._runners[session] = backend, backend.bind(*arrays)
        return bound[1]


def _named(
    signature: Signature, arrays: list[NDArray[np.uint8]]
) -> list[dict[str, NDArray[Any]]]:
    """Returns inputs, outputs and state as views of the core's byte arrays, by name."""
    rest = iter(arrays[1:])  # skip is_first, which only the core reads
    return [
        {name: _rows_of(spec, next(rest)) for name, spec in specs.items()}
        for specs in (signature.inputs, signature.outputs, signature.state)
    ]


def _rows_of(spec: TensorSpec, array: NDArray[np.uint8]) -> NDArray[Any]:
    return array.view(spec.dtype).reshape(-1, *spec.shape)


def connect_rows(
    client: Client, signature: Signature, num_rows: int
) -> Callable[[], Stream]:
    """Returns a function that opens a session of ``num_rows`` rows with the server."""
    # Decide by the server's address: with TLS, the socket is local even between hosts.
    is_shared = not is_net(client.name)
    message = {
        "ask": _ROWS,
        "num_rows": num_rows,
        "is_shared": is_shared,
        "signature": to_dict(signature),
    }
    return lambda: Stream(client.open_now(message)[0], is_shared)


def ask_model(client: Client, patience_s: float) -> int | None:
    """Returns the number of the server's model, -1 for none, or None without a reply.

    The server replies on a separate thread, even during a slow batch.

    Args:
        client: The client of the server.
        patience_s: Maximum time to wait for a reply in seconds, at least 2.

    Raises:
        UsageError: The server has a different protocol version, or rejects the token.
    """
    try:
        connection, model = client.open_now({"ask": _MODEL}, patience_s)
    except (OSError, RunError):
        return None
    connection.close()
    return int(model)


def serve_rows(server: InferenceServer, signature: Signature) -> Service:
    """Returns a service on which actors open sessions with ``server``."""

    def open_rows(connection: socket.socket, message: Message) -> dict[str, Any]:
        num_rows = message["num_rows"]
        if type(num_rows) is not int or not 1 <= num_rows <= server.max_rows:
            raise UsageError(
                f"num_rows ({num_rows}) must be 1 to {server.max_rows}; use more actors"
            )
        is_shared = message["is_shared"]
        if is_shared is not False and connection.family != socket.AF_UNIX:
            raise UsageError(
                f"is_shared ({is_shared}) must be False between hosts; connect through "
                "the folder"
            )
        asked = from_dict(Signature, message["signature"], "signature")
        for part in ("inputs", "outputs", "state"):
            mine, theirs = getattr(signature, part), getattr(asked, part)
            # Compare the order too, because it determines the order of the arrays.
            if list(mine.items()) != list(theirs.items()):
                raise UsageError(
                    f"signature ({part} {', '.join(theirs) or 'none'}) must be that of "
                    f"the network, {', '.join(mine) or 'none'}; restart this role"
                )
        server.add(Stream(connection.dup(), bool(is_shared)), num_rows)
        return {}

    return Service(
        dialect=INFERENCE,
        questions={_MODEL: lambda message: server.model},
        sessions={_ROWS: open_rows},
        num_sessions=lambda: server.num_sessions,
    )
