"""Central inference: the rows of many actors in one batch, on one model at a time.

A batch is fired when the device is idle and ``min_rows`` rows wait, or the oldest
request has waited ``max_wait_s``. An actor that dies takes its rows with it, and nobody
waits for it. Sessions are the core's (``core/inference/row_server.h``): what is done
here is done once a batch, however many actors are in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.errors import RunError
from tengen.inference.backend import Backend, Runner
from tengen.inference.central.messages import Stream
from tengen.inference.central.shared_rows import make_shared
from tengen.inference.row_arrays import RowArrays
from tengen.tensors import Signature, TensorSpec

__all__ = ["InferenceServer", "ServerStats"]

# Sessions of actors that died are open until their end is seen.
_MOST_BATCHES = 8
# To copy fewer bytes costs less than arrays of their own, and what a backend keeps for
# them.
_LEAST_IN_PLACE_BYTES = 65536
# Sessions that rows were evaluated in place of, which come again in other batches.
_MOST_IN_PLACE = 64


@dataclass(frozen=True)
class ServerStats:
    """What a server did until now."""

    num_batches: int
    """Batches evaluated."""
    num_evaluations: int
    """Rows evaluated."""
    inference_s: float
    """Seconds inside the network."""
    copy_s: float
    """Seconds of gathering rows of several actors and of handing out their answers."""
    wait_s: float
    """Seconds in which no request waited."""
    num_lost: int
    """Sessions that ended before the server did."""


@dataclass(frozen=True)
class _Model:
    backend: Backend
    version: int
    number: int


class InferenceServer:
    """Answers sessions. ``run`` is one thread's; the other methods are for any thread.

    Args:
        signature: Of the network, its state included.
        max_rows: The largest batch, at least the rows of any session.
        min_rows: Rows that a batch waits for, 1 to ``max_rows``.
        max_wait_s: The longest that a request waits for ``min_rows``, 0 or more.

    Attributes:
        max_rows: As it was given.
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
        # Of the serving thread alone: by the number of a session, 0 for the batch.
        self._runners: dict[int, tuple[Backend, Runner]] = {}

    def add(self, stream: Stream, num_rows: int) -> None:
        """Takes a session.

        Args:
            stream: To the actor; the server's from here on.
            num_rows: N of the actor, 1 to ``max_rows``.

        Raises:
            RunError: There is no memory for its rows, or the server has ended.
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
        """Has later batches evaluated by a model.

        Args:
            backend: The model, opened with the outputs of the signature.
            version: Learner steps behind it.
            number: Its number.
        """
        self._model = _Model(backend, version, number)
        self._rows.start()

    @property
    def model(self) -> int:
        """The number of the model that answers now; -1 before there is one."""
        model = self._model
        return -1 if model is None else model.number

    @property
    def num_sessions(self) -> int:
        """Sessions that are open or wait to be."""
        return self._rows.num_sessions

    @property
    def stats(self) -> ServerStats:
        """Counters since the start."""
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
        """Ends ``run`` after the batch that is going on."""
        self._rows.stop()

    def run(self) -> None:
        """Answers requests until ``stop``, then ends every session. Blocks.

        Raises:
            Exception: What the backend raised; every session is told.
        """
        try:
            while num_rows := self._rows.next():
                model = self._model
                assert model is not None  # or the core would fire no batch
                self._runner(model.backend).run(num_rows)
                self._rows.done(model.version, model.number)
        except Exception as error:
            self._rows.refuse(f"central inference failed, {error}")
            raise
        finally:
            self._runners.clear()
            self._rows.close()

    def _runner(self, backend: Backend) -> Runner:
        """Returns a runner over the rows of the batch where they lie."""
        session = self._rows.alone
        bound = self._runners.get(session)
        if bound is None or bound[0] is not backend:
            if len(self._runners) > _MOST_IN_PLACE:
                self._runners.clear()  # of sessions that have ended too
            arrays = _named(self._signature, self._rows.arrays())
            bound = self._runners[session] = backend, backend.bind(*arrays)
        return bound[1]


def _named(
    signature: Signature, arrays: list[NDArray[np.uint8]]
) -> list[dict[str, NDArray[Any]]]:
    """Returns inputs, outputs and state of the core's bytes."""
    rest = iter(arrays[1:])  # behind is_first, which the core reads
    return [
        {name: _rows_of(spec, next(rest)) for name, spec in specs.items()}
        for specs in (signature.inputs, signature.outputs, signature.state)
    ]


def _rows_of(spec: TensorSpec, array: NDArray[np.uint8]) -> NDArray[Any]:
    return array.view(spec.dtype).reshape(-1, *spec.shape)
