"""Does an answer depend on a row's neighbours, place or batch size? Ask the model.

Byte-identical runs need an evaluation to be a function of the row alone. No library
promises that, so a run asks the real model on real rows before it starts.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from tengen.inference.backend import Backend, FloatArray

__all__ = ["ProbeResult", "probe"]


@dataclass(frozen=True)
class ProbeResult:
    """What the probe saw.

    Attributes:
        num_rows: Rows that were evaluated again in another batch.
        num_different: Those of them whose answer had other bits.
    """

    num_rows: int
    num_different: int

    @property
    def is_deterministic(self) -> bool:
        """Whether every row kept its bits."""
        return self.num_different == 0


def probe(
    backend: Backend,
    planes: FloatArray,
    num_actions: int,
    *,
    batch_rows: int,
    num_threads: int = 1,
    num_rounds: int = 4,
    seed: int = 0,
) -> ProbeResult:
    """Evaluates rows in shuffled batches of random sizes and compares the bits.

    Blocks for about ``num_threads * num_rounds + 1`` evaluations of every row.

    Args:
        backend: What to ask.
        planes: ``[M, C, H, W]`` float32, real and different positions.
        num_actions: A.
        batch_rows: Most rows of a batch.
        num_threads: Threads that evaluate at the same time.
        num_rounds: Shuffles of each thread.
        seed: Of the shuffles.
    """
    reference = _Evaluator(backend, planes, num_actions, batch_rows)
    wanted = reference.evaluate(np.arange(len(planes)), sizes=None)
    different = [0] * num_threads
    errors: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            rng = np.random.default_rng((seed, thread))
            evaluator = _Evaluator(backend, planes, num_actions, batch_rows)
            for _ in range(num_rounds):
                order = rng.permutation(len(planes))
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
    return ProbeResult(num_threads * num_rounds * len(planes), sum(different))


class _Evaluator:
    """One caller with buffers of its own."""

    def __init__(
        self, backend: Backend, rows: FloatArray, num_actions: int, batch_rows: int
    ) -> None:
        self._rows = rows
        self._planes = np.zeros((batch_rows, *rows.shape[1:]), np.float32)
        self._answers = [
            np.zeros((batch_rows, num_actions), np.float32),
            np.zeros(batch_rows, np.float32),
        ]
        if backend.has_score:
            self._answers.append(np.zeros((batch_rows, 2), np.float32))
        self._runner = backend.bind(self._planes, *self._answers)

    def evaluate(
        self,
        order: np.ndarray[tuple[int], np.dtype[np.int64]],
        sizes: np.random.Generator | None,
    ) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
        """Returns ``[M, ...]`` bits of all answers, by row not by place.

        Args:
            order: ``[M]`` rows in the order of evaluation.
            sizes: Draws batch sizes; None for full batches.
        """
        capacity = len(self._planes)
        widths = [answer[0].size for answer in self._answers]
        answers = np.zeros((len(order), sum(widths)), np.float32)
        start = 0
        while start < len(order):
            size = int(sizes.integers(1, capacity + 1)) if sizes else capacity
            chosen = order[start : start + size]
            n = len(chosen)
            self._planes[:n] = self._rows[chosen]
            self._runner.run(n)
            parts = [answer[:n].reshape(n, -1) for answer in self._answers]
            answers[chosen] = np.concatenate(parts, axis=1)
            start += n
        return answers.view(np.uint32)
