"""A learner that follows another one: it makes the same steps, on parts of its own."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tengen.errors import TengenError
from tengen.experience import ExperiencePart
from tengen.learners.group import ALONE, GroupLost, TorchGroup
from tengen.learners.loop import Learner
from tengen.learners.peer import Peer
from tengen.learners.states import unpacked_state
from tengen.learners.team import PATIENCE_S
from tengen.store import Batch

__all__ = ["Follower"]

_LOOK_S = 0.1
# For the end of the leader to be seen, where something of it has failed.
_END_S = 1.0
# For the leader to go on without one that is to stop.
_LEAVE_S = 10.0


class Follower:
    """Follows one leader for as long as both live. Used by one thread.

    While it learns from one batch, the next one that it was told of is drawn.

    Args:
        connection: A session of the leader's service; closed by ``run``.
        part: What it draws from; closed by ``run``.
        make_learner: Returns a learner for the network of a stage, by its number.
        stop: Once it is set, the follower leaves between two batches.
        patience_s: See ``TorchGroup``.
        progress: Takes counts after each step.

    Attributes:
        num_steps: Steps that it made.
        num_lost: Groups that were lost.
        size: Learners of its group, 1 while it has none.
    """

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
        self._patience_s = patience_s
        self._progress = progress
        self._learner: Learner | None = None
        self._stage = -1
        # Of the group that it is in, or agreed to make.
        self._number = -1
        self._is_ended = threading.Event()
        self._arrived: queue.SimpleQueue[
            tuple[dict[str, Any] | None, Future[Batch] | None]
        ] = queue.SimpleQueue()
        self._sampler = ThreadPoolExecutor(1, thread_name_prefix="learner-sample")
        self._peer = Peer(connection, self._hear)

    def run(self) -> None:
        """Follows until the leader lets it go or is gone, or ``stop`` is set.

        Raises:
            TengenError: It could not draw or learn, and the leader is there.
        """
        self._peer.begin()
        self._peer.send({"is": "here"})
        leaves_s: float | None = None
        try:
            while True:
                if self._stop.is_set() and leaves_s is None:
                    self._peer.send({"is": "leaving"})
                    leaves_s = time.monotonic() + _LEAVE_S
                try:
                    message, batch = self._arrived.get(timeout=_LOOK_S)
                except queue.Empty:
                    if leaves_s is not None and time.monotonic() >= leaves_s:
                        return
                    continue
                if message is None or message["do"] == "bye":
                    return
                self._take(message, batch)
        except TengenError:
            # A draw fails where the leader, who has the table, was killed meanwhile.
            if not self._is_ended.wait(_END_S):
                raise
        finally:
            self._end()

    def _end(self) -> None:
        self._peer.close()
        self._part.close()
        if self._learner is not None:
            self._learner.group.close()
            self._learner.close()
        self._sampler.shutdown(cancel_futures=True)

    def _hear(self, message: dict[str, Any] | None) -> None:
        """Takes what the leader says, in the thread that reads; draws begin at once."""
        batch = None
        if message is None:
            self._is_ended.set()
            # A draw that waits for the leader's table waits no longer.
            self._part.close()
        elif message["do"] == "batch":
            with contextlib.suppress(RuntimeError):  # it has ended
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
                # Of a group that was lost: it counts as drawn.
                batch.result().ack()
        else:
            try:
                self._work(message, batch)
            except GroupLost:
                self.num_lost += 1
                self._leave()
                if batch is not None:
                    batch.result().ack()

    def _work(self, message: dict[str, Any], batch: Future[Batch] | None) -> None:
        """Does what the learners of a group do together."""
        learner = self._learner
        assert learner is not None
        if message["do"] == "meet":
            names = ("host", "port", "name", "rank", "size", "backend")
            group = TorchGroup(
                **{name: message[name] for name in names},
                patience_s=self._patience_s,
                device=learner.device,
            )
            learner.load_state(unpacked_state(group.broadcast(b"")))
            learner.join(group)
            self.size = group.size
        elif message["do"] == "check":
            learner.check_same()
        elif batch is not None:
            learner.remaining = message["remaining"]
            learner.asked = message["asked"]
            metrics = learner.follow(batch.result())
            self.num_steps += 1
            self._progress({"num_steps": self.num_steps, **metrics})

    def _prepare(self, message: dict[str, Any]) -> None:
        """Opens what batches are drawn from, and makes the stage's learner."""
        # In the thread that draws, behind the draws that are under way.
        self._sampler.submit(self._part.catch_up, message["shared"]).result()
        if message["stage"] != self._stage:
            if self._learner is not None:
                self._learner.close()
            self._learner = self._make_learner(message["stage"])
            self._stage = message["stage"]

    def _leave(self) -> None:
        """Is in no group any more."""
        self._number = -1
        self.size = 1
        if self._learner is not None:
            self._learner.group.close()
            self._learner.join(ALONE)
