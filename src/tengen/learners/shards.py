"""Computes gradients of a batch in parts, bit-identically for any number of threads.

Each part is computed on one intra-op thread with its own norm statistics, and the
gradients of the parts are added in order. Several learners share the parts, and add
their sums with two collectives per step: one for all gradients, with 4 bytes per
parameter, and one for the metrics and norm statistics, with 8 bytes per number.
"""

from __future__ import annotations

import copy
import functools
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from tengen.inference import has_bfloat16
from tengen.learners.group import Group
from tengen.learners.update import Update
from tengen.nets import Net

T = TypeVar("T")

# Alignment of each gradient for vector registers, in elements of 4 bytes.
_ALIGNMENT = 16


class Part(NamedTuple):
    """The gradients and metrics of one part of a batch."""

    gradients: tuple[Tensor, ...]
    """Gradients, one per parameter, multiplied by the part's fraction of the rows."""
    metrics: dict[str, Tensor]
    """Scalar metrics by name, multiplied by the part's fraction of the rows."""
    priorities: Tensor | None
    """Priorities ``[rows]`` of the part's items; None if the agent has none."""


class Shards:
    """Copies of a network, one per part of a batch, that share its parameters.

    Attributes:
        gradients: Gradients of the complete batch, one per parameter, as computed by
            ``add`` or ``add_over``.
        num_threads: Number of computing threads, each with one intra-op thread.
    """

    def __init__(
        self,
        net: Net,
        update: Update,
        num_shards: int,
        *,
        dtype: torch.dtype,
        num_threads: int,
    ) -> None:
        """Creates the network copies and starts the threads.

        Args:
            net: The network, whose norm statistics are means over its copies.
            update: The agent's update, which computes the loss of a part.
            num_shards: Number of parts of a batch, at least 1.
            dtype: Dtype in which the network's trunk computes.
            num_threads: Maximum number of parts computed concurrently.
        """
        self._net = net
        self._update = update
        trained = (p for p in net.parameters() if p.requires_grad)
        self._parameters = [*trained, *update.parameters()]
        self._replicas = [_replica(net, dtype) for _ in range(num_shards)]
        # Norm statistics of the network and of each copy, in the same order. Listed
        # once, because listing takes a large fraction of a small network's step.
        names = [name for name, _ in net.named_buffers()]
        self._merged = [net.get_buffer(name) for name in names]
        self._copies = [[r.get_buffer(name) for name in names] for r in self._replicas]
        self._flat, self.gradients = _gradients(self._parameters)
        # Metric names of all learners; None until the learners exchange them.
        self._names: list[str] | None = None
        self._thread = threading.local()
        self.num_threads = min(num_shards, num_threads)
        self._pool = ThreadPoolExecutor(
            self.num_threads,
            thread_name_prefix="learner",
            initializer=self._begin_thread,
        )

    def compute(self, columns: dict[str, Tensor]) -> list[Part]:
        """Returns the computed parts of a minibatch, in order. Blocks.

        If the caller's thread is one of this object's (see ``run``), it computes all
        parts itself.

        Args:
            columns: Tensors ``[rows, ...]``; the result is empty if there are no rows.
        """
        num_rows, num_parts = len(next(iter(columns.values()))), len(self._replicas)
        bounds = [num_rows * index // num_parts for index in range(num_parts + 1)]
        works = [
            functools.partial(
                self._part,
                replica,
                {name: column[first:last] for name, column in columns.items()},
                (last - first) / num_rows,
            )
            for replica, first, last in zip(
                self._replicas, bounds, bounds[1:], strict=False
            )
            # Skip empty parts, because a minibatch may have fewer rows than parts.
            if first < last
        ]
        if self._is_own_thread:
            return [work() for work in works]
        futures = [self._pool.submit(work) for work in works]
        return [future.result() for future in futures]

    def run(self, work: Callable[[], T]) -> T:
        """Runs ``work`` on a thread with one intra-op thread, and returns its result.

        If the caller's thread is one of this object's, it runs ``work`` itself.
        """
        return work() if self._is_own_thread else self._pool.submit(work).result()

    @torch.no_grad()
    def add(self, parts: list[Part]) -> dict[str, float]:
        """Sums the parts' gradients into ``gradients``, and returns summed metrics."""
        self.add_gradients(parts)
        names = list(parts[0].metrics)
        # Use one transfer, because each wait for a shared GPU takes milliseconds.
        numbers = torch.stack([part.metrics[n] for part in parts for n in names])
        found = numbers.reshape(len(parts), len(names)).T.tolist()
        return {name: sum(each) for name, each in zip(names, found, strict=True)}

    @torch.no_grad()
    def add_gradients(self, parts: list[Part]) -> None:
        """Sums the parts' gradients into ``gradients``."""
        # Use one call for all tensors, because on a GPU each call launches a kernel.
        torch._foreach_copy_(self.gradients, parts[0].gradients)
        for part in parts[1:]:
            torch._foreach_add_(self.gradients, part.gradients)

    @torch.no_grad()
    def add_over(
        self, group: Group, parts: list[Part], num_rows: int, num_parts: int
    ) -> dict[str, float]:
        """Like ``add`` and ``merge_statistics``, but over the parts of all learners.

        Args:
            group: The learners that share the minibatch.
            parts: This learner's parts of a minibatch; empty if it has no rows.
            num_rows: Number of this learner's rows in the minibatch.
            num_parts: Total number of parts over all learners.

        Returns:
            The metrics, averaged over the rows of all learners.

        Raises:
            GroupLost: A learner was lost. Gradients and statistics are then undefined,
                but the parameters are unchanged.
        """
        metrics = self.add(parts) if parts else {}
        if not parts:
            self._flat.zero_()
        names = self._metric_names(group, metrics)
        small = torch.tensor(
            [float(num_rows), *(num_rows * metrics.get(name, 0.0) for name in names)],
            dtype=torch.float64,
        )
        statistics = [small]
        for copies in zip(*self._copies, strict=True):
            total = torch.stack([one.double() for one in copies]).sum(0)
            statistics.append(total.flatten().cpu())
        small = torch.cat(statistics)
        group.add(small)
        total_rows, sums = small[0].item(), small[1 : 1 + len(names)].tolist()
        # Weight this learner's means, so that the sum over learners is the total mean.
        self._flat.mul_(num_rows / total_rows)
        group.add(self._flat)
        place = 1 + len(names)
        for merged in self._merged:
            found = small[place : place + merged.numel()] / num_parts
            merged.copy_(found.view(merged.shape))
            place += merged.numel()
        self.spread_statistics()
        return {
            name: total / total_rows for name, total in zip(names, sums, strict=True)
        }

    def _metric_names(self, group: Group, metrics: dict[str, float]) -> list[str]:
        """Returns all learners' metric names, because a learner may have no rows."""
        if self._names is None:
            each = group.gather_bytes(json.dumps(list(metrics)).encode())
            self._names = sorted({name for data in each for name in json.loads(data)})
        return self._names

    @torch.no_grad()
    def merge_statistics(self) -> None:
        """Sets the network's norm statistics to the mean over its copies."""
        if not self._merged:
            return
        torch._foreach_copy_(self._merged, self._copies[0])
        for copies in self._copies[1:]:
            torch._foreach_add_(self._merged, copies)
        torch._foreach_div_(self._merged, len(self._copies))
        self.spread_statistics()

    @torch.no_grad()
    def spread_statistics(self) -> None:
        """Sets the norm statistics of all network copies to those of the network."""
        if not self._merged:
            return
        for copies in self._copies:
            torch._foreach_copy_(copies, self._merged)

    def close(self) -> None:
        """Ends the computing threads."""
        self._pool.shutdown()

    @property
    def _is_own_thread(self) -> bool:
        return getattr(self._thread, "is_own", False)

    def _begin_thread(self) -> None:
        self._thread.is_own = True
        torch.set_num_threads(1)

    def _part(self, net: Net, columns: dict[str, Tensor], share: float) -> Part:
        found = self._update.loss(net, columns)
        loss = found.loss * share
        # Avoid ``.grad``, because the concurrent parts share parameters.
        gradients = torch.autograd.grad(loss, self._parameters, materialize_grads=True)
        named = {
            name: metric.detach() * share for name, metric in found.metrics.items()
        }
        return Part(gradients, {"loss": loss.detach(), **named}, found.priorities)


def preferred_dtype(precision: str, device: torch.device) -> torch.dtype:
    """Returns the dtype for ``LearnerConfig.precision`` on a device.

    ``auto`` is bfloat16 if the device multiplies bfloat16 in hardware. Otherwise it is
    float32, because emulated bfloat16 is not faster.
    """
    if precision != "auto":
        return torch.bfloat16 if precision == "bfloat16" else torch.float32
    if device.type == "cuda":
        with torch.cuda.device(device):
            is_native = torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if is_native else torch.float32
    return torch.bfloat16 if has_bfloat16() else torch.float32


def _gradients(parameters: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Returns a zeroed gradient buffer, and a view into it for each parameter."""
    lengths = [-(-p.numel() // _ALIGNMENT) * _ALIGNMENT for p in parameters]
    flat = torch.zeros(sum(lengths), device=parameters[0].device)
    views = []
    place = 0
    for parameter, length in zip(parameters, lengths, strict=True):
        own = flat[place : place + parameter.numel()]
        views.append(own.view(parameter.shape))
        place += length
    return flat, views


def _replica(net: Net, dtype: torch.dtype) -> Net:
    """Returns a copy of ``net`` with shared parameters and its own norm statistics."""
    replica = copy.deepcopy(net, {id(p): p for p in net.parameters()})
    replica.compute_dtype = dtype
    return replica
