"""A learner that follows another one: it makes the same steps, on parts of its own."""

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
from tengen.learners.grace import Grace
from tengen.learners.group import ALONE, GroupLost
from tengen.learners.loop import Learner
from tengen.learners.peer import Peer
from tengen.learners.states import unpacked_state
from tengen.learners.team import PATIENCE_S
from tengen.learners.torch_group import TorchGroup
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
        connection: A session of the leader's service; closed by ``close``.
        part: What it draws from; closed by ``close``.
        make_learner: Returns a learner for the network of a stage, by its number.
        stop: Once it is set, ``work`` ends, some seconds later at most; the leader
            waits until ``close``.
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
        self._grace = Grace(stop)
        self._patience_s = patience_s
        self._progress = progress
        self._learner: Learner | None = None
        self._stage = -1
        # Of the group that it is in, or agreed to make.
        self._number = -1
        # The last one that the leader has given up.
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
        """Tells the leader that it is here. Called once, before the rest."""
        self._peer.begin()
        self._peer.send({"is": "here"})

    def work(self, seconds: float = math.inf) -> bool:
        """Follows for some time, or until ``stop`` is set. Blocks.

        Args:
            seconds: How long, and to the end of the step that is under way then.

        Returns:
            Whether the leader is still there, and has not let it go.

        Raises:
            TengenError: It could not draw or learn, and the leader is there.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._stop.is_set():
            if not self._take_next():
                return False
        return True

    def close(self) -> None:
        """Leaves between two batches, and releases what it holds.

        Blocks until the leader goes on without it, some seconds at most.
        """
        try:
            self._peer.send({"is": "leaving"})
            until = time.monotonic() + _LEAVE_S
            while time.monotonic() < until and self._take_next():
                pass
        except TengenError:
            pass  # it was told by ``work``, or is of what the leader took with it
        finally:
            self._is_over = True
            self._peer.close()
            self._part.close()
            if self._learner is not None:
                self._learner.group.close()
                self._learner.close()
            self._sampler.shutdown(cancel_futures=True)

    def _take_next(self) -> bool:
        """Does what the leader says next, if it says something soon."""
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
            # A draw fails where the leader, who has the table, was killed meanwhile.
            self._is_over = True
            if not self._is_ended.wait(_END_S):
                raise
            return False
        return True

    def _hear(self, message: dict[str, Any] | None) -> None:
        """Takes what the leader says, in the thread that reads; draws begin at once."""
        batch = None
        if message is None:
            self._is_ended.set()
            # A draw that waits for the leader's table waits no longer.
            self._part.close()
        elif message["do"] == "lost":
            # Heard here, as the thread that works may be waiting in that group.
            self._lost_number = message["group"]
            return
        elif message["do"] == "bye":
            self._is_parted = True
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
            except GroupLost as error:
                self.num_lost += 1
                # The leader may not see it: it may wait for what never comes.
                self._peer.send(
                    {"is": "failed", "group": self._number, "why": str(error)}
                )
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
                why_over=self._why_over,
            )
            # From here on the learner closes it, whatever happens.
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
        """Says why the group that it is in is over; empty where it is not."""
        if self._lost_number >= self._number:
            return "the leader has given the group up"
        # One that said goodbye has done its part of what is still under way.
        if self._is_ended.is_set() and not self._is_parted:
            return "the leader is gone"
        if self._grace.is_over:
            return "this learner is to stop"
        return ""

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
