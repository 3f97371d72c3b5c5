"""Ensures that the outputs for a row do not depend on the batch or the row's index.

In byte-identical runs, a row's outputs must be a function of the row alone. No library
guarantees this, so a run probes its model on real rows when it starts. If the bits
depend on the batch, every batch is split or padded to the same number of rows, which
costs a copy and the evaluation of the padding.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.inference.backend import (
    NO_STATE,
    Arrays,
    Backend,
    Runner,
    allocate,
    check_arrays,
)
from tengen.inference.config import BatchShape, Precision
from tengen.tensors import Signature

_Pairs = list[tuple[NDArray[Any], NDArray[Any]]]


@dataclass(frozen=True)
class ProbeResult:
    """The result of ``probe``.

    Attributes:
        num_rows: Number of evaluations of rows that were compared.
        num_different: Number of compared evaluations whose output bits differed.
    """

    num_rows: int
    num_different: int

    @property
    def is_deterministic(self) -> bool:
        """Whether every row had the same output bits in all batches."""
        return self.num_different == 0


def probe(
    backend: Backend,
    inputs: Arrays,
    *,
    batch_rows: int,
    num_threads: int = 1,
    num_rounds: int = 4,
    seed: int = 0,
) -> ProbeResult:
    """Evaluates rows in shuffled batches of random sizes and compares output bits.

    Blocks for about ``num_threads * num_rounds + 1`` evaluations of every row.

    Args:
        backend: The backend to probe.
        inputs: The network's inputs ``[M, ...]`` by name, with real and distinct rows.
            The recurrent state, if any, is zero in every row.
        batch_rows: Maximum number of rows in a batch.
        num_threads: Number of threads that evaluate concurrently.
        num_rounds: Number of evaluations of all rows per thread, each in a new order.
        seed: Seed of the orders and batch sizes.
    """
    num_inputs = len(next(iter(inputs.values())))
    reference = _Evaluator(backend, inputs, batch_rows)
    wanted = reference.evaluate(np.arange(num_inputs), sizes=None)
    different = [0] * num_threads
    errors: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            rng = np.random.default_rng((seed, thread))
            evaluator = _Evaluator(backend, inputs, batch_rows)
            for _ in range(num_rounds):
                order = rng.permutation(num_inputs)
                found = evaluator.evaluate(order, sizes=rng)
                different[thread] += int((found != wanted).any(axis=1).sum())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return ProbeResult(num_threads * num_rounds * num_inputs, sum(different))


class _Evaluator:
    """Evaluates given rows with a backend, in its own arrays."""

    def __init__(self, backend: Backend, rows: Arrays, batch_rows: int) -> None:
        self._rows = rows
        self._batch_rows = batch_rows
        self._inputs = {
            name: np.zeros((batch_rows, *array.shape[1:]), array.dtype)
            for name, array in rows.items()
        }
        self._outputs = allocate(backend.signature.outputs, batch_rows)
        self._state = allocate(backend.signature.state, batch_rows)
        self._runner = backend.bind(self._inputs, self._outputs, self._state)

    def evaluate(
        self,
        order: np.ndarray[tuple[int], np.dtype[np.int64]],
        sizes: np.random.Generator | None,
    ) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
        """Returns the bytes of each row's outputs, ``[M, ...]``, in the original order.

        Args:
            order: ``[M]``, the row indices in the order of evaluation.
            sizes: The generator of random batch sizes; None for full batches.
        """
        capacity = self._batch_rows
        num_bytes = sum(array.nbytes // capacity for array in self._outputs.values())
        answers = np.zeros((len(order), num_bytes), np.uint8)
        start = 0
        while start < len(order):
            size = int(sizes.integers(1, capacity + 1)) if sizes else capacity
            chosen = order[start : start + size]
            n = len(chosen)
            for name, array in self._inputs.items():
                array[:n] = self._rows[name][chosen]
            for array in self._state.values():
                array[:n] = 0
            self._runner.run(n)
            parts = [
                array[:n].reshape(n, -1).view(np.uint8)
                for array in self._outputs.values()
            ]
            answers[chosen] = np.concatenate(parts, axis=1)
            start += n
        return answers


class FixedBackend:
    """A ``Backend`` that evaluates fixed-size batches with a wrapped backend.

    Attributes:
        name: The name of the wrapped backend.
        version: The version of the wrapped backend.
        precision: The precision of the wrapped backend.
        batch_shape: ``fixed``.
        signature: The signature of the wrapped backend.
    """

    batch_shape: BatchShape = "fixed"

    def __init__(self, backend: Backend, batch_rows: int) -> None:
        """Wraps a backend.

        Args:
            backend: The backend that evaluates the batches.
            batch_rows: Number of rows in every batch.
        """
        self.name: str = backend.name
        self.version: str = backend.version
        self.precision: Precision = backend.precision
        self.signature: Signature = backend.signature
        self._backend = backend
        self._batch_rows = batch_rows

    def bind(self, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE) -> Runner:
        """Returns a runner over the given arrays; see ``Backend.bind``."""
        check_arrays(self.signature, inputs, outputs, state)
        return _FixedRunner(self._backend, self._batch_rows, inputs, outputs, state)


class _FixedRunner:
    """A ``Runner`` that evaluates copies of the rows in a batch of fixed size."""

    def __init__(
        self,
        backend: Backend,
        batch_rows: int,
        inputs: Arrays,
        outputs: Arrays,
        state: Arrays,
    ) -> None:
        self._batch_rows = batch_rows
        own = [
            {
                name: np.zeros((batch_rows, *array.shape[1:]), array.dtype)
                for name, array in arrays.items()
            }
            for arrays in (inputs, outputs, state)
        ]
        pairs: list[_Pairs] = [
            [(array, batch[name]) for name, array in arrays.items()]
            for arrays, batch in zip((inputs, outputs, state), own, strict=True)
        ]
        self._read = pairs[0] + pairs[2]
        self._written = pairs[1] + pairs[2]
        self._runner = backend.bind(*own)

    def run(self, num_rows: int) -> None:
        """Evaluates the first ``num_rows`` rows; see ``Runner.run``."""
        for start in range(0, num_rows, self._batch_rows):
            end = min(start + self._batch_rows, num_rows)
            n = end - start
            for array, batch in self._read:
                batch[:n] = array[start:end]
            self._runner.run(self._batch_rows)
            for array, batch in self._written:
                array[start:end] = batch[:n]
