"""One network on one device, prepared for batches of some sizes.

A program is the whole way from rows to answers, unpacking included, recorded once a
batch size. Programs of a device work on the same memory, one at a time.

Legend: n rows, C planes, H W board, A actions.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from tengen.inference.buckets import bucket_for, bucket_sizes
from tengen.inference.device import Device, Step
from tengen.inference.rows import RowLayout, unpack_rows
from tengen.nets import InferenceHead

__all__ = ["Batch", "Programs", "rate"]

_MIN_WORK_S = 0.03


class Batch(NamedTuple):
    """Rows and their answers, in one place."""

    rows: Tensor
    """``[N, layout.num_bytes]`` uint8."""
    policy: Tensor
    """``[N, A]`` float32 logits."""
    value: Tensor
    """``[N]`` float32 in [-1, 1] to play."""
    score: Tensor | None
    """``[N, 2]`` float32, mean and standard deviation in points to play; None where the
    network does not answer with it."""

    @property
    def answers(self) -> tuple[Tensor, ...]:
        """All but the rows, in the order of the network's answers."""
        found = (self.policy, self.value)
        return found if self.score is None else (*found, self.score)

    @classmethod
    def on_device(
        cls, device: Device, layout: RowLayout, num_rows: int, head: InferenceHead
    ) -> Batch:
        """Returns zeros in the device's memory."""

        def zeros(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device.where)

        return cls._made(zeros, layout, num_rows, head)

    @classmethod
    def beside_device(
        cls, device: Device, layout: RowLayout, num_rows: int, head: InferenceHead
    ) -> Batch:
        """Returns zeros in the host's memory that the device can copy by itself."""
        return cls._made(device.host_memory, layout, num_rows, head)

    @classmethod
    def _made(
        cls,
        zeros: Callable[[tuple[int, ...], torch.dtype], Tensor],
        layout: RowLayout,
        num_rows: int,
        head: InferenceHead,
    ) -> Batch:
        num_actions = head.net.features.num_actions
        return cls(
            zeros((num_rows, layout.num_bytes), torch.uint8),
            zeros((num_rows, num_actions), torch.float32),
            zeros((num_rows,), torch.float32),
            zeros((num_rows, 2), torch.float32) if head.answers_score else None,
        )


class Programs:
    """The programs of one network.

    Args:
        head: The network, on the device, in evaluation mode.
        device: The device.
        layout: Of the rows.
        max_rows: The largest batch.

    Raises:
        torch.OutOfMemoryError: The largest batch needs more memory than there is.
    """

    def __init__(
        self,
        head: InferenceHead,
        device: Device,
        layout: RowLayout,
        max_rows: int,
    ) -> None:
        self._head = head
        self._layout = layout
        self._batch = Batch.on_device(device, layout, max_rows, head)
        self._sizes = bucket_sizes(max_rows)
        # The largest first: the others find room in what it took.
        self._launch: dict[int, Step] = {
            size: device.record(self._program(size)) for size in reversed(self._sizes)
        }

    def run(self, num_rows: int, batch: Batch) -> None:
        """Answers the first rows of a batch on the device; only hands the work over."""
        n = num_rows
        self._batch.rows[:n].copy_(batch.rows[:n])
        self._launch[bucket_for(n, self._sizes)]()
        for to, answer in zip(batch.answers, self._batch.answers, strict=True):
            to[:n].copy_(answer[:n])

    def _program(self, size: int) -> Step:
        rows = self._batch.rows[:size]
        answers = [answer[:size] for answer in self._batch.answers]

        def program() -> None:
            with torch.inference_mode():
                found = self._head(unpack_rows(rows, self._layout))
                for to, answer in zip(answers, found, strict=True):
                    to.copy_(answer)

        return program


def rate(
    head: InferenceHead,
    device: Device,
    num_rows: int,
    seconds: float,
) -> float:
    """Returns evaluations per second of the network alone, nothing copied or unpacked.

    The rate that everything around the network is measured against. Blocks for about
    ``seconds``.

    Raises:
        torch.OutOfMemoryError: The batch needs more memory than there is.
    """
    features = head.net.features
    shape = (num_rows, features.num_planes, features.height, features.width)
    generator = torch.Generator().manual_seed(0)
    planes = torch.randint(0, 2, shape, generator=generator).float()
    planes[:, 0] = 1.0
    planes = planes.to(device.where)
    policy = torch.zeros((num_rows, features.num_actions), device=device.where)
    value = torch.zeros(num_rows, device=device.where)

    def program() -> None:
        with torch.inference_mode():
            found = head(planes)
            policy.copy_(found[0])
            value.copy_(found[1])

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
        # So many at once that the device hardly waits for this loop.
        if now_s - before_s < _MIN_WORK_S:
            num_at_once *= 2
    return num_calls * num_rows / (now_s - start_s)
