"""A following learner: it makes the leader's steps, on its own parts of the batches."""

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

__all__ = ["Follower"]

_LOOK_S = 0.1
# After a failed draw, seconds to wait for a sign that the leader has ended.
_END_S = 1.0


class Follower:
    """Follows one leader for as long as both live. Used by one thread.

    While the follower learns from one batch, the next batch is drawn.

    Args:
        connection: A session of the leader's service; closed by ``close``.
        part: The experience to draw from; closed by ``close``.
        make_learner: Returns a learner for the network of a stage, by its number.
        stop: Once it is set, ``work`` ends after some seconds at most; the leader waits
            until ``close``.
        patience_s: See ``TorchGroup``.
        progress: Called with counters after each step.

    Attributes:
        num_steps: Steps that this follower has made.
        num_lost: Groups that were lost.
        size: Learners in its group, 1 while it has none.
        leave_s: Seconds in which the leader must have let a follower go that wants to
            leave.
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
        # Number of the group that it is in, or has agreed to make.
        self._number = -1
        # Number of the last group that the leader has given up.
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
        """Tells the leader that it is here. Called once, before other methods."""
        self._peer.begin()
        self._peer.send({"is": "here"})

    def work(self, seconds: float = math.inf) -> bool:
        """Follows for some time, or until ``stop`` is set. Blocks.

        Args:
            seconds: How long; a step that is under way then is finished.

        Returns:
            Whether the session goes on: the leader is there and has not let it go.

        Raises:
            TengenError: It could not draw or learn, although the leader is there.
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
            until = time.monotonic() + self.leave_s
            while time.monotonic() < until and self._take_next():
                pass
        except TengenError:
            pass  # ``work`` has raised it, or it follows from the leader's end
        finally:
            self._is_over = True
            self._peer.close()
            self._part.close()
            if self._learner is not None:
                self._learner.group.close()
                self._learner.close()
            self._sampler.shutdown(cancel_futures=True)

    def _take_next(self) -> bool:
        """Handles the leader's next message, if one comes soon."""
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
            # A draw fails where the leader, which has the table, was killed meanwhile.
            self._is_over = True
            if not self._is_ended.wait(_END_S):
                raise
            return False
        return True

    def _hear(self, message: dict[str, Any] | None) -> None:
        """Takes a message in the thread that reads it; a draw begins at once."""
        batch = None
        if message is None:
            self._is_ended.set()
            # So that a draw does not go on waiting for the leader's table.
            self._part.close()
        elif message["do"] == "lost":
            # Handled here, because the working thread may be waiting in that group.
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
                # A batch of a group that was lost counts as drawn.
                batch.result().ack()
        else:
            try:
                self._work(message, batch)
            except GroupLost as error:
                self.num_lost += 1
                # The leader may not notice by itself, and would wait in vain.
                self._peer.send(
                    {"is": "failed", "group": self._number, "why": str(error)}
                )
                self._leave()
                if batch is not None:
                    batch.result().ack()

    def _work(self, message: dict[str, Any], batch: Future[Batch] | None) -> None:
        """Handles a message that all learners of a group act on together."""
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
            # From here on the learner closes the group, whatever happens.
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
        """Returns why its group is over; empty where it is not."""
        if self._lost_number >= self._number:
            return "the leader has given the group up"
        # After a "bye" the leader has done its part of the step under way.
        if self._is_ended.is_set() and not self._is_parted:
            return "the leader is gone"
        if self._grace.is_over:
            return "this learner is to stop"
        return ""

    def _prepare(self, message: dict[str, Any]) -> None:
        """Opens the experience, and makes the stage's learner."""
        # In the thread that draws, after the draws that are under way.
        self._sampler.submit(self._part.catch_up, message["shared"]).result()
        if message["stage"] != self._stage:
            if self._learner is not None:
                self._learner.close()
            self._learner = self._make_learner(message["stage"])
            self._stage = message["stage"]

    def _leave(self) -> None:
        """Leaves its group."""
        self._number = -1
        self.size = 1
        if self._learner is not None:
            self._learner.group.close()
            self._learner.join(ALONE)
