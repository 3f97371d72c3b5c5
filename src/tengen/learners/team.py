"""The leader's part in a group of learners: it forms the group and directs followers.

Followers may join and leave at any time. Between two batches the leader forms a new
group if a follower outside the group is ready, or if a follower in the group has gone
or wants to leave. The leader then sends its complete state to every follower, so that
all states are equal even after an interrupted step. The global batch is the same for
any number of learners.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tengen.errors import UsageError, os_reason
from tengen.learners.group import ALONE, GroupLost
from tengen.learners.peer import LEARNERS, Grace, Member, Pauses, Peer, check_versions
from tengen.learners.torch_group import GLOO, NCCL, Meeting, TorchGroup
from tengen.transport import Message, Service

if TYPE_CHECKING:
    from tengen.experience import Experience
    from tengen.learners.loop import Learner

PATIENCE_S = 330.0
"""Maximum time that learners of a group wait for each other in a step, in seconds. It
is far longer than a straggler's delay. A wait also stops when the other process ends.
"""

# Seconds between checks of the stop event while waiting for a message.
_LOOK_S = 0.25


class Team:
    """The followers of a leader. Used by the leader's thread and its sampling thread.

    Args:
        experience: The leader's experience.
        count: The maximum number of learners, including the leader.
        host: The address of this host at which the group communicates.
        gpu: An identifier of the leader's GPU, unique across hosts; empty on a CPU.
        stop: When set, the leader stops waiting for followers within a few seconds.
        patience_s: The maximum wait for a living follower, in seconds.
        say: Called with each message line for the user.

    Attributes:
        service: The service that followers connect to; the caller serves it.
        stage: Number of network stages that have begun; set by the caller.
        num_lost: Number of groups that failed because a follower was lost.
    """

    def __init__(
        self,
        experience: Experience,
        count: int,
        *,
        host: str = "127.0.0.1",
        gpu: str = "",
        stop: threading.Event | None = None,
        patience_s: float = PATIENCE_S,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.stage = 0
        self.num_lost = 0
        self._experience = experience
        self._count = count
        self._host = host
        self._gpu = gpu
        self._stop = stop or threading.Event()
        self._grace = Grace(self._stop)
        self._patience_s = patience_s
        self._say = say
        self._changed = threading.Condition()
        self._members: list[Member] = []
        # Followers in the current group, ordered by rank, from rank 1.
        self._grouped: list[Member] = []
        self._pauses = Pauses()
        self._number = 0
        self._is_whole = True
        self._meeting: Meeting | None = None
        self._learner: Learner | None = None
        self.service = Service(
            dialect=LEARNERS,
            sessions={"follow": self._let_in},
            num_sessions=lambda: len(self._members),
        )

    @property
    def size(self) -> int:
        """Number of learners in the group, including the leader."""
        return 1 + len(self._grouped)

    @property
    def is_due(self) -> bool:
        """Whether the group must change, so that ``settle`` must be called."""
        with self._changed:
            is_new = any(one.is_here and not one.is_told for one in self._members)
            return is_new or not self._is_settled()

    def settle(self, learner: Learner) -> None:
        """Forms a new group unless the current group consists of all ready followers.

        Blocks until each member has received the leader's state or has gone. No batch
        may be in flight. If ``stop`` is set, the leader continues alone.

        Args:
            learner: The leader.

        Raises:
            RunError: A batch is in flight.
        """
        is_new_learner = learner is not self._learner
        if is_new_learner and self._learner is not None:
            # The network has grown, so close the group of the previous learner.
            self._learner.group.close()
        self._learner = learner
        with self._changed:
            new = [one for one in self._members if one.is_here and not one.is_told]
            is_settled = self._is_settled() and not is_new_learner
        if new:
            shared = self._experience.shared(begins=False)
            for one in new:
                one.is_told = True
                one.send(do="prepare", stage=self.stage, shared=shared)
        if is_settled:
            return
        while not self._stop.is_set():
            # After a failure, the next attempt excludes the followers that failed.
            if self._form(learner):
                return
        self._disband(learner)
        self._part(self._members)

    def order(
        self,
        order: dict[str, Any],
        bounds: Sequence[tuple[int, int]],
        remaining: float | None,
        asked: float | None,
    ) -> None:
        """Orders the followers to sample their parts of a batch and train on them.

        Args:
            order: The description of the batch; see ``Divided``.
            bounds: Start and end index of each learner's samples, by rank.
            remaining: See ``Learner.remaining``.
            asked: See ``Learner.asked``.
        """
        for one, (first, last) in zip(self._grouped, bounds[1:], strict=True):
            one.send(
                do="batch",
                group=self._number,
                order=order,
                num_samples=bounds[-1][1],
                first=first,
                last=last,
                remaining=remaining,
                asked=asked,
            )

    def lost(self, error: GroupLost, num_applied: int = 0) -> None:
        """Records that the group has failed; the next ``settle`` forms a new group.

        Args:
            error: The failure of the group.
            num_applied: Number of completed optimizer steps on the current batch.
        """
        assert self._learner is not None
        self._learner.group.close()
        self._is_whole = False
        self._tell_lost(self._grouped)
        what = "a step was aborted"
        if not self._grace.is_over:
            self.num_lost += 1
            what = "a learner was lost, and its step aborted"
        if num_applied:
            what += f" after {num_applied} minibatches of its batch, which are kept"
        self._say(f"{what}: {error}")

    def check_same(self) -> None:
        """Checks that all learners of the group have the same weights.

        Raises:
            RunError: The weights differ.
        """
        if self._learner is None or not self._grouped or not self._is_whole:
            return
        for one in self._grouped:
            one.send(do="check", group=self._number)
        try:
            self._learner.check_same()
        except GroupLost as error:
            self.lost(error)

    def close(self) -> None:
        """Leaves the group and ends the sessions of all followers. Idempotent."""
        if self._learner is not None:
            self._learner.group.close()
        self._part(self._members)
        if self._meeting is not None:
            self._meeting.close()
            self._meeting = None

    def _is_settled(self) -> bool:
        return self._is_whole and set(self._able()) == set(self._grouped)

    def _able(self) -> list[Member]:
        """Returns the followers that can join the next group now."""
        able = [one for one in self._members if one.is_able]
        return [one for one in able if self._pauses.is_over(one.index)]

    def _form(self, learner: Learner) -> bool:
        """Tries to form a group with all able followers; returns whether it has."""
        self._disband(learner)
        with self._changed:
            self._number += 1
            number = self._number
            asked = self._able()
            left = [one for one in self._members if one.is_leaving]
        self._part(left)
        asked.sort(key=lambda one: one.index)
        if asked:
            shared = self._experience.shared(begins=True)
            for one in asked:
                one.send(do="group", group=number, stage=self.stage, shared=shared)
            self._wait_for_willing(asked, number)
            silent = [one for one in asked if one.willing != number]
            if silent or not all(one.is_able for one in asked):
                if not self._stop.is_set():
                    self._put_off([one for one in silent if one.is_able], "silence")
                self._part(silent)
                return False
        if not asked:
            self._is_whole = True
            learner.join(ALONE)
            return True
        try:
            self._meet(learner, asked)
        except GroupLost as error:
            if not self._stop.is_set():
                failed = [one for one in asked if one.why_over(number)]
                self._put_off(failed or asked, str(error))
            return False
        for one in asked:
            self._pauses.end(one.index)
        self._grouped = asked
        self._is_whole = True
        self._say(f"{self.size} learners now compute each step together")
        return True

    def _meet(self, learner: Learner, asked: Sequence[Member]) -> None:
        from tengen.learners.states import packed_state

        if self._meeting is None:
            try:
                self._meeting = Meeting(self._host)
            except OSError as error:
                raise UsageError(
                    f"listen ({self._host}) cannot be used for the learners: "
                    f"{os_reason(error)}; set launch.listen to an address of this host"
                ) from error
        size = 1 + len(asked)
        gpus = {self._gpu, *(one.gpu for one in asked)}
        has_own = "" not in gpus and len(gpus) == size
        # The group's name is random, so that its keys in torch's store are unique and
        # secret.
        meeting: dict[str, Any] = {
            "host": self._host,
            "port": self._meeting.port,
            "name": secrets.token_hex(16),
            "size": size,
            "backend": NCCL if has_own else GLOO,
        }
        for rank, one in enumerate(asked, start=1):
            one.send(do="meet", group=self._number, rank=rank, **meeting)
        try:
            group = TorchGroup(
                **meeting,
                rank=0,
                patience_s=self._patience_s,
                device=learner.device,
                why_over=lambda: self._why_over(asked),
            )
            # The learner takes ownership of the group, and closes it even after errors.
            learner.join(group)
            group.broadcast(packed_state(learner.state()))
        except GroupLost:
            self._tell_lost(asked)
            raise

    def _why_over(self, members: Sequence[Member]) -> str:
        """Returns why the group with ``members`` has failed; empty if it has not."""
        for one in members:
            why = one.why_over(self._number)
            if why:
                return why
        if self._grace.is_over:
            return "this learner must stop"
        return ""

    def _tell_lost(self, members: Sequence[Member]) -> None:
        """Notifies ``members`` that the group has failed, so that they stop waiting."""
        for one in members:
            one.send(do="lost", group=self._number)

    def _put_off(self, members: Sequence[Member], why: str) -> None:
        """Excludes ``members`` from new groups for a pause; see ``Pauses``."""
        for one in members:
            seconds = self._pauses.put_off(one.index)
            self._say(
                f"learner {one.index} did not connect to the others, and is retried in "
                f"{seconds:g} s: {why}"
            )

    def _disband(self, learner: Learner) -> None:
        learner.group.close()
        learner.join(ALONE)
        self._grouped = []

    def _wait_for_willing(self, asked: Sequence[Member], number: int) -> None:
        until = time.monotonic() + self._patience_s
        with self._changed:
            while not all(one.willing == number or not one.is_able for one in asked):
                if self._stop.is_set() or time.monotonic() >= until:
                    return
                self._changed.wait(_LOOK_S)

    def _part(self, members: Sequence[Member]) -> None:
        for one in list(members):
            one.send(do="bye")
            assert one.peer is not None
            one.peer.close()
            self._forget(one)

    def _forget(self, member: Member) -> None:
        with self._changed:
            member.is_gone = True
            with contextlib.suppress(ValueError):
                self._members.remove(member)
            self._changed.notify_all()

    def _let_in(self, connection: socket.socket, message: Message) -> dict[str, Any]:
        check_versions(message)
        member = Member(int(message["index"]), str(message["gpu"]))
        if not 1 <= member.index < self._count:
            raise UsageError(
                f"index ({member.index}) must be in [1, {self._count - 1}]; raise "
                f"launch.roles.learn.count"
            )
        member.peer = Peer(
            connection.dup(), lambda message: self._hear(member, message)
        )
        with self._changed:
            for one in self._members:
                if one.index == member.index:
                    # The process that had this index was replaced before its stream
                    # was closed.
                    one.is_gone = True
            self._members.append(member)
        member.peer.begin()
        return {}

    def _hear(self, member: Member, message: dict[str, Any] | None) -> None:
        """Handles a message from ``member``, on the reader thread; None at the end."""
        if message is None:
            self._forget(member)
            return
        with self._changed:
            member.hear(message)
            self._changed.notify_all()


def gpu_name(device: str) -> str:
    """Returns an identifier of a GPU, unique across hosts; empty for a CPU.

    Args:
        device: A torch device, such as ``cuda:0``.
    """
    import torch

    place = torch.device(device)
    if place.type != "cuda":
        return ""
    return str(torch.cuda.get_device_properties(place).uuid)
