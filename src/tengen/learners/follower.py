"""A follower: a learner that computes a part of each of a leader's learner steps."""

from __future__ import annotations

import contextlib
import math
import queue
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tengen.errors import TengenError
from tengen.experience import ExperiencePart
from tengen.learners.group import ALONE, GroupLost
from tengen.learners.loop import Learner
from tengen.learners.peer import Grace, Peer
from tengen.learners.states import unpacked_state
from tengen.learners.team import PATIENCE_S
from tengen.learners.torch_group import TorchGroup
from tengen.store import Batch

_LOOK_S = 0.1
# Seconds to wait, after sampling failed, for the leader's connection to end.
_END_S = 1.0


class Follower:
    """Follows one leader until the leader or this follower ends. Used by one thread.

    While the follower trains on one batch, it samples its part of the next batch.

    Args:
        connection: A session of the leader's service; ``close`` closes it.
        part: The experience to sample from; ``close`` closes it.
        make_learner: Creates a learner for the network of a stage, given its number.
        stop: When set, ``work`` returns within a few seconds. The leader waits for this
            follower until ``close``.
        patience_s: See ``TorchGroup``.
        progress: Called with counters after each step.

    Attributes:
        num_steps: Number of learner steps in which this follower took part.
        num_lost: Number of groups that failed while this follower was in them.
        size: Number of learners in the current group; 1 without a group.
        leave_s: Maximum seconds that ``close`` waits for the leader to release this
            follower.
    """

    leave_s = 10.0

    def __init__(
        self,
        connection: socket.socket,
        part: ExperiencePart,
        make_learner: Callable[[int], Learner],
        stop: threading.Event,
        *,
        patience_s: float = PATIENCE_S,
        progress: Callable[[dict[str, Any]], None] = lambda report: None,
    ) -> None:
        self.num_steps = 0
        self.num_lost = 0
        self.size = 1
        self._part = part
        self._make_learner = make_learner
        self._stop = stop
        self._grace = Grace(stop)
        self._patience_s = patience_s
        self._progress = progress
        self._learner: Learner | None = None
        self._stage = -1
        # ID of the group that this follower is in, or has agreed to join.
        self._number = -1
        # ID of the last group that the leader has reported as failed.
        self._lost_number = -1
        self._is_over = False
        self._is_parted = False
        self._is_ended = threading.Event()
        self._arrived: queue.SimpleQueue[
            tuple[dict[str, Any] | None, Future[Batch] | None]
        ] = queue.SimpleQueue()
        self._sampler = ThreadPoolExecutor(1, thread_name_prefix="learner-sample")
        self._peer = Peer(connection, self._hear)

    def begin(self) -> None:
        """Registers with the leader. Must be called once, before other methods."""
        self._peer.begin()
        self._peer.send({"is": "here"})

    def work(self, seconds: float = math.inf) -> bool:
        """Follows the leader for ``seconds``, or until ``stop`` is set. Blocks.

        Args:
            seconds: Maximum time; a step in progress is still completed.

        Returns:
            False if the leader has ended or has released this follower.

        Raises:
            TengenError: Sampling or a step failed, although the leader is alive.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._stop.is_set():
            if not self._take_next():
                return False
        return True

    def close(self) -> None:
        """Leaves the group between two batches, and frees all resources.

        Blocks until the leader has released this follower, for at most some seconds.
        """
        try:
            self._peer.send({"is": "leaving"})
            until = time.monotonic() + self.leave_s
            while time.monotonic() < until and self._take_next():
                pass
        except TengenError:
            pass  # ``work`` has raised this error already, or the leader has ended
        finally:
            self._is_over = True
            self._peer.close()
            self._part.close()
            if self._learner is not None:
                self._learner.group.close()
                self._learner.close()
            self._sampler.shutdown(cancel_futures=True)

    def _take_next(self) -> bool:
        """Handles the leader's next message, if any; returns False at the end."""
        if self._is_over:
            return False
        try:
            message, batch = self._arrived.get(timeout=_LOOK_S)
        except queue.Empty:
            return True
        if message is None or message["do"] == "bye":
            self._is_over = True
            return False
        try:
            self._take(message, batch)
        except TengenError:
            # Sampling also fails if the leader, which serves the table, was killed.
            self._is_over = True
            if not self._is_ended.wait(_END_S):
                raise
            return False
        return True

    def _hear(self, message: dict[str, Any] | None) -> None:
        """Queues a message from the leader; starts to sample a batch immediately."""
        batch = None
        if message is None:
            self._is_ended.set()
            # Unblocks sampling that waits for the leader's table.
            self._part.close()
        elif message["do"] == "lost":
            # Not queued, because the working thread may be waiting in the failed group.
            self._lost_number = message["group"]
            return
        elif message["do"] == "bye":
            self._is_parted = True
        elif message["do"] == "batch":
            with contextlib.suppress(RuntimeError):  # raised after ``close``
                batch = self._sampler.submit(self._draw, message)
        self._arrived.put((message, batch))

    def _draw(self, message: dict[str, Any]) -> Batch:
        names = ("num_samples", "first", "last")
        numbers = (int(message[name]) for name in names)
        return self._part.draw(message["order"], *numbers)

    def _take(self, message: dict[str, Any], batch: Future[Batch] | None) -> None:
        what = message["do"]
        if what == "prepare":
            self._prepare(message)
            self._peer.send({"is": "ready"})
        elif what == "group":
            self._leave()
            self._prepare(message)
            self._number = message["group"]
            self._peer.send({"is": "willing", "group": self._number})
        elif message["group"] != self._number:
            if batch is not None:
                # Acknowledge the lost group's batch, because it counts as sampled.
                batch.result().ack()
        else:
            try:
                self._work(message, batch)
            except GroupLost as error:
                self.num_lost += 1
                # The leader may not have noticed the loss, and still wait in the group.
                self._peer.send(
                    {"is": "failed", "group": self._number, "why": str(error)}
                )
                self._leave()
                if batch is not None:
                    batch.result().ack()

    def _work(self, message: dict[str, Any], batch: Future[Batch] | None) -> None:
        """Handles "meet", "batch" or "check", which start a collective of the group."""
        learner = self._learner
        assert learner is not None
        if message["do"] == "meet":
            names = ("host", "port", "name", "rank", "size", "backend")
            group = TorchGroup(
                **{name: message[name] for name in names},
                patience_s=self._patience_s,
                device=learner.device,
                why_over=self._why_over,
            )
            # The learner takes ownership of the group, and closes it even after errors.
            learner.join(group)
            learner.load_state(unpacked_state(group.broadcast(b"")))
            self.size = group.size
        elif message["do"] == "check":
            learner.check_same()
        elif batch is not None:
            learner.remaining = message["remaining"]
            learner.asked = message["asked"]
            metrics = learner.follow(batch.result())
            self.num_steps += 1
            self._progress({"num_steps": self.num_steps, **metrics})

    def _why_over(self) -> str:
        """Returns why this follower must leave the group; empty if it may stay."""
        if self._lost_number >= self._number:
            return "the leader has disbanded the group"
        # The leader may end after "bye", because it has completed the current step.
        if self._is_ended.is_set() and not self._is_parted:
            return "the leader has ended"
        if self._grace.is_over:
            return "this learner must stop"
        return ""

    def _prepare(self, message: dict[str, Any]) -> None:
        """Opens the experience and creates the learner that ``message`` describes."""
        # Run on the sampling thread, to wait for sampling in progress.
        self._sampler.submit(self._part.catch_up, message["shared"]).result()
        if message["stage"] != self._stage:
            if self._learner is not None:
                self._learner.close()
            self._learner = self._make_learner(message["stage"])
            self._stage = message["stage"]

    def _leave(self) -> None:
        """Leaves the current group of learners."""
        self._number = -1
        self.size = 1
        if self._learner is not None:
            self._learner.group.close()
            self._learner.join(ALONE)
