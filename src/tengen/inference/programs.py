"""One network on one device, prepared for batches of some sizes.

A program computes the answers to rows, unpacking included, and is recorded once for
each batch size. Programs of a device use the same memory, one at a time.

Legend: n rows, C planes, H W board, A actions.
"""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tengen.inference.device import Device, Step
from tengen.inference.rows import RowLayout, unpack_rows
from tengen.inference.torch_backend import LoadedHead
from tengen.tensors import Signature, TensorSpec

__all__ = ["MIN_BUCKET_ROWS", "Batch", "Programs", "bucket_for", "bucket_sizes", "rate"]

_MIN_WORK_S = 0.03

_Zeros = Callable[[tuple[int, ...], torch.dtype], Tensor]


class Batch(NamedTuple):
    """Memory for rows and their answers."""

    rows: Tensor
    """``[N, layout.num_bytes]`` uint8."""
    answers: dict[str, Tensor]
    """``[N, ...]`` by name, in the order of the signature's outputs."""

    @classmethod
    def on_device(
        cls, device: Device, layout: RowLayout, num_rows: int, signature: Signature
    ) -> Batch:
        """Returns zeros in the device's memory."""
        return cls._made(_zeros_on(device), layout, num_rows, signature)

    @classmethod
    def beside_device(
        cls, device: Device, layout: RowLayout, num_rows: int, signature: Signature
    ) -> Batch:
        """Returns zeros in the host's memory that the device can copy by itself."""
        return cls._made(device.host_memory, layout, num_rows, signature)

    @classmethod
    def _made(
        cls, zeros: _Zeros, layout: RowLayout, num_rows: int, signature: Signature
    ) -> Batch:
        rows = zeros((num_rows, layout.num_bytes), torch.uint8)
        return cls(rows, _made_of(zeros, signature.outputs, num_rows))


def _zeros_on(device: Device) -> _Zeros:
    def zeros(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=device.where)

    return zeros


def _made_of(
    zeros: _Zeros, specs: dict[str, TensorSpec], num_rows: int
) -> dict[str, Tensor]:
    return {
        name: zeros((num_rows, *spec.shape), _dtype(spec))
        for name, spec in specs.items()
    }


def _dtype(spec: TensorSpec) -> torch.dtype:
    return torch.from_numpy(np.zeros(0, spec.dtype)).dtype


class Programs:
    """The programs of one network.

    Args:
        loaded: The network, on the device; planes are its only input.
        device: The device.
        layout: Layout of the rows.
        max_rows: The largest batch.

    Raises:
        torch.OutOfMemoryError: The largest batch needs more memory than there is.
    """

    def __init__(
        self,
        loaded: LoadedHead,
        device: Device,
        layout: RowLayout,
        max_rows: int,
    ) -> None:
        self._head = loaded.head
        self._layout = layout
        self._batch = Batch.on_device(device, layout, max_rows, loaded.signature)
        self._sizes = bucket_sizes(max_rows)
        # The largest first, so that the others reuse its memory.
        self._launch: dict[int, Step] = {
            size: device.record(self._program(size)) for size in reversed(self._sizes)
        }

    def run(self, num_rows: int, batch: Batch) -> None:
        """Starts to answer the first rows of a batch on the device; does not wait."""
        n = num_rows
        self._batch.rows[:n].copy_(batch.rows[:n])
        self._launch[bucket_for(n, self._sizes)]()
        for name, to in batch.answers.items():
            to[:n].copy_(self._batch.answers[name][:n])

    def _program(self, size: int) -> Step:
        rows = self._batch.rows[:size]
        answers = [answer[:size] for answer in self._batch.answers.values()]

        def program() -> None:
            with torch.inference_mode():
                _copy(self._head(unpack_rows(rows, self._layout)), answers)

        return program


def _copy(found: Iterable[Tensor], to: Iterable[Tensor]) -> None:
    for place, answer in zip(to, found, strict=True):
        place.copy_(answer)


def rate(
    loaded: LoadedHead,
    device: Device,
    num_rows: int,
    seconds: float,
) -> float:
    """Returns evaluations per second of the network alone, without copies or unpacking.

    This is the upper bound for everything around the network. Blocks for about
    ``seconds``.

    Raises:
        torch.OutOfMemoryError: The batch needs more memory than there is.
    """
    head, signature = loaded
    generator = torch.Generator().manual_seed(0)
    read: list[Tensor] = []
    for spec in (*signature.inputs.values(), *signature.state.values()):
        shape = (num_rows, *spec.shape)
        rows = torch.randint(0, 2, shape, generator=generator).to(_dtype(spec))
        if signature.board is not None:
            rows[:, 0] = 1.0
        read.append(rows.to(device.where))
    specs = {**signature.outputs, **signature.state}
    answers = _made_of(_zeros_on(device), specs, num_rows)

    def program() -> None:
        with torch.inference_mode():
            _copy(head(*read), answers.values())

    launch = device.record(program)
    device.synchronize()
    num_calls, num_at_once = 0, 1
    start_s = now_s = time.perf_counter()
    while now_s - start_s < seconds:
        before_s = now_s
        for _ in range(num_at_once):
            launch()
        device.synchronize()
        num_calls += num_at_once
        now_s = time.perf_counter()
        # Raised until the device hardly waits for this loop.
        if now_s - before_s < _MIN_WORK_S:
            num_at_once *= 2
    return num_calls * num_rows / (now_s - start_s)


MIN_BUCKET_ROWS = 8
"""The smallest batch size: a device takes as long for fewer rows."""


def bucket_sizes(max_rows: int) -> tuple[int, ...]:
    """Returns the sizes in increasing order: ``max_rows``, 3/4 of it, then halves.

    The steps are small near ``max_rows``, because batches are usually nearly full.

    Args:
        max_rows: The largest batch, at least 1.
    """
    sizes = {max_rows}
    if max_rows >= 4 * MIN_BUCKET_ROWS:
        sizes.add(3 * max_rows // 4)
    half = max_rows // 2
    while half >= MIN_BUCKET_ROWS:
        sizes.add(half)
        half //= 2
    return tuple(sorted(sizes))


def bucket_for(num_rows: int, sizes: Sequence[int]) -> int:
    """Returns the smallest of the sizes that holds the rows.

    Args:
        num_rows: 1 to the largest size.
        sizes: In increasing order.
    """
    return sizes[bisect.bisect_left(sizes, num_rows)]
