"""The placement of a run's roles on the ranks of ``mpirun``.

The table ``launch.roles`` of ``run.json`` defines the run's processes and the resources
that they request. The first rank is the runner and hosts the roles that learn, gate and
rate. If the first rank's host lacks the cores or GPUs that a role requests, the role is
placed on the first rank whose host has them, and that rank gets no acting process. Each
of the other ranks has one acting process: a self-play process or an environment actor.

A role that requests GPUs has exclusive use of them. A process that requests no GPUs can
use the remaining GPUs of its host.

Source: CUDA C++ Programming Guide, "CUDA Environment Variables", CUDA_VISIBLE_DEVICES:
a list of device indices or UUIDs; only entries before the first invalid one are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tengen.errors import UsageError
from tengen.inference import parse_devices
from tengen.launch.launcher import Placed
from tengen.launch.workers import (
    Worker,
    with_cores,
    with_count,
    workers_at_once,
)
from tengen.roles import RunConfig
from tengen.roles.devices import gpus_named

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_NAMED = ("GPU-", "MIG-")
_LEARNING = ("learn", "follow")


@dataclass(frozen=True, kw_only=True)
class RankInfo:
    """A rank's description of its host and software."""

    rank: int
    """The index of the rank."""
    host: str
    """The host name."""
    cores: int
    """The number of cores available to the rank's processes. Ranks may share cores."""
    bound_to: str = ""
    """The indices of the rank's cores, as text; ranks with equal text share cores."""
    devices: Sequence[str] = ()
    """GPUs that the rank's processes may use, in the format of CUDA_VISIBLE_DEVICES."""
    version: str = ""
    """The version of tengen on the rank's host."""
    python: str = ""
    """The major and minor version of Python on the rank's host."""


def check_alike(ranks: Sequence[RankInfo]) -> None:
    """Checks that all ranks run the same version of tengen and of Python.

    Raises:
        UsageError: A rank's version differs from the first rank's version.
    """
    first = ranks[0]
    for name, what in (("version", "tengen"), ("python", "Python")):
        for one in ranks[1:]:
            theirs, ours = getattr(one, name), getattr(first, name)
            if theirs != ours:
                raise UsageError(
                    f"{what} ({theirs} on rank {one.rank}, host {one.host}) must be "
                    f"{ours}, as on rank 0, host {first.host}; install the same "
                    "version on every host"
                )


def filled(config: RunConfig, ranks: Sequence[RankInfo]) -> RunConfig:
    """Returns a config with one acting process for each rank without another role.

    Raises:
        UsageError: No rank is left, or no rank has the resources that a role requests.
    """
    acting = config.schedule.acting
    if not acting:
        return config
    plan = _Plan(config, ranks)
    if not plan.free:
        raise plan.wrong_number(1)
    return with_count(config, acting, len(plan.free))


def place(config: RunConfig, ranks: Sequence[RankInfo]) -> list[Placed]:
    """Returns the placements of all processes of a run on ranks.

    Args:
        config: The run's config.
        ranks: All ranks, in order.

    Raises:
        UsageError: The number of ranks does not match the roles, no rank has the
            resources that a role requests, or actors or followers are on hosts other
            than the learner's and ``launch.listen`` is not set.
    """
    plan = _Plan(config, ranks)
    if len(plan.free) != len(plan.players):
        raise plan.wrong_number(len(plan.players))
    for worker, rank in zip(plan.players, plan.free, strict=True):
        plan.take(worker, rank)
    # Divide cores that several ranks share among all processes of these ranks.
    placed = []
    for share in dict.fromkeys((one.host, one.bound_to) for one in ranks):
        sharing = [one for one in ranks if (one.host, one.bound_to) == share]
        numbers = {one.rank for one in sharing}
        here = [one for one in plan.workers if plan.where[one.name] in numbers]
        for worker in with_cores(config, here, sharing[0].cores):
            rank, host = plan.where[worker.name], sharing[0].host
            devices = plan.devices_of(worker)
            placed.append(Placed(worker=worker, rank=rank, host=host, devices=devices))
    order = {one.name: number for number, one in enumerate(plan.workers)}
    placed.sort(key=lambda one: (one.rank, order[one.worker.name]))
    _check_doors(config, placed)
    return placed


def _check_doors(config: RunConfig, placed: Sequence[Placed]) -> None:
    """Checks that all processes can connect to the learner and to inference."""
    schedule = config.schedule
    hosts: dict[str, list[str]] = {}
    for one in placed:
        hosts.setdefault(one.worker.roles[0], []).append(one.host)
    home = hosts["learn"][0]
    inference = hosts[schedule.serving][-1] if schedule.serving else home
    if home != inference:
        raise UsageError(
            f"launch.roles.{schedule.serving} (on {inference}) must be on the host of "
            f"the learner, {home}; request fewer cores or GPUs for one of them"
        )
    clients = {"learners": "follow"}
    if schedule.serving:
        clients["actors"] = schedule.acting
    for who, role in clients.items():
        away = sorted({*hosts.get(role, ())} - {home})
        if away and not config.launch.listen:
            raise UsageError(
                f"launch.listen (empty) must be an address of {home}, because {who} "
                f"are on {', '.join(away)}; set it, launch.certificate_file and "
                f"launch.key_file"
            )


class _Plan:
    """The ranks of a run's processes. At first, only non-acting processes have a rank.

    Args:
        config: The run's config.
        ranks: All ranks, in order.

    Raises:
        UsageError: No rank's host has the resources that a role requests.

    Attributes:
        workers: All processes of the run.
        players: The acting processes.
        where: The rank of each process that has one, by the process's name.
        free: The ranks for acting processes.
    """

    def __init__(self, config: RunConfig, ranks: Sequence[RankInfo]) -> None:
        self._config = config
        self._ranks = ranks
        # The cores that no process has reserved yet, and each process's own GPUs.
        self._cores = {(one.host, one.bound_to): one.cores for one in ranks}
        self._kept: dict[str, tuple[str, ...]] = {}
        acting = (config.schedule.acting,)
        self.workers = workers_at_once(config, 1)
        self.players = [one for one in self.workers if one.roles == acting]
        self._others = [one for one in self.workers if one.roles != acting]
        self.where: dict[str, int] = {}
        for worker in self._others:
            able = (rank for rank in range(len(ranks)) if not self._lack(worker, rank))
            self.take(worker, next(able, 0))
        busy = {0, *self.where.values()}
        self.free = [one.rank for one in ranks if one.rank not in busy]

    def take(self, worker: Worker, rank: int) -> None:
        """Gives a process its rank, and reserves the resources that it requests.

        Raises:
            UsageError: The rank's host does not have enough resources left.
        """
        if lack := self._lack(worker, rank):
            raise UsageError(lack)
        asked, one = self._config.launch.of(worker.given_as), self._ranks[rank]
        self._cores[one.host, one.bound_to] -= asked.num_cpus
        self._kept[worker.name] = self._free_devices(rank)[: asked.num_gpus]
        self.where[worker.name] = rank

    def devices_of(self, worker: Worker) -> tuple[str, ...] | None:
        """Returns ``Placed.devices`` of a process. Called after all ``take`` calls."""
        rank = self.where[worker.name]
        if not self._kept_on(rank):
            return None
        return self._kept[worker.name] or self._free_devices(rank)

    def wrong_number(self, count: int) -> UsageError:
        """Returns an error: ``count`` acting processes do not match the free ranks."""
        acting = self._config.schedule.acting
        left = len(self.free)
        busy = len(self._ranks) - left
        names = ", ".join(role for one in self._others for role in one.roles)
        with_roles = "rank 0 has" if busy == 1 else f"{busy} ranks have"
        parts = [f"{with_roles} {names}"]
        if acting:
            parts.append(f"{count} {'has' if count == 1 else 'have'} one {acting} each")
        advice = f"use mpirun -n {busy + count}"
        if acting and left >= 1 and count != left:
            advice += f", or --set launch.roles.{acting}.count={left}"
        return UsageError(
            f"ranks ({len(self._ranks)}) must be {busy + count}: "
            f"{' and '.join(parts)}; {advice}"
        )

    def _kept_on(self, rank: int) -> set[str]:
        """Returns the GPUs of a rank's host that processes have reserved."""
        host = self._ranks[rank].host
        return {
            device
            for name, kept in self._kept.items()
            if self._ranks[self.where[name]].host == host
            for device in kept
        }

    def _free_devices(self, rank: int) -> tuple[str, ...]:
        """Returns the GPUs that are visible to a rank and not reserved."""
        kept = self._kept_on(rank)
        return tuple(name for name in self._ranks[rank].devices if name not in kept)

    def _lack(self, worker: Worker, rank: int) -> str:
        """Returns which resources a rank's host lacks for a process; "" if none."""
        asked, one = self._config.launch.of(worker.given_as), self._ranks[rank]
        left = {
            "cpus": self._cores[one.host, one.bound_to],
            "gpus": len(self._free_devices(rank)),
        }
        words = {
            "cpus": ("cores", "mpirun --bind-to none or a larger host"),
            "gpus": ("GPUs", "mpirun a host with more GPUs"),
        }
        for name, (things, advice) in words.items():
            wanted = getattr(asked, f"num_{name}")
            if wanted > left[name]:
                return (
                    f"launch.roles.{worker.given_as}.num_{name} ({wanted}) must be at "
                    f"most {left[name]}, the free {things} of rank {rank} on "
                    f"{one.host} for {worker.name}; lower it, or give {advice}"
                )
        return ""


def visible_devices(environment: Mapping[str, str], folder: Path) -> tuple[str, ...]:
    """Returns the indices or UUIDs of the GPUs that are visible to a process.

    Args:
        environment: The environment variables of the process.
        folder: The folder with the GPUs' device files, normally ``/dev``.
    """
    count = len(list(folder.glob("nvidia[0-9]*")))
    given = environment.get(_VARIABLE)
    if given is None or count == 0:
        return tuple(map(str, range(count)))
    found: list[str] = []
    for name in map(str.strip, given.split(",")):
        is_number = name.isdecimal() and int(name) < count
        if not is_number and not name.startswith(_NAMED):
            break
        found.append(name)
    return tuple(found)


def check_named_gpus(
    config: RunConfig, ranks: Sequence[RankInfo], table: Sequence[Placed]
) -> None:
    """Checks that the processes have the GPUs that the config names.

    Imports torch if a process of the first rank needs a GPU. Other ranks are checked
    with the GPUs that they report. If no rank reports a GPU, because the hosts have no
    device files for GPUs, each process checks its GPUs when it starts.

    Args:
        config: The run's config.
        ranks: All ranks, in order.
        table: The result of ``place``.

    Raises:
        UsageError: A GPU is missing.
    """
    named = gpus_named(config)
    if not named:
        return
    is_known = any(one.devices for one in ranks)
    # Actors that use an inference server need no GPU.
    schedule = config.schedule
    idle = schedule.acting if schedule.serving else ""
    for one in table:
        role = one.worker.roles[0]
        name = "learner.device" if role in _LEARNING else "inference.devices"
        if name not in named or role == idle:
            continue
        if one.rank == 0:
            parse_devices(name, named[name])
        elif is_known:
            _check_seen(name, named[name], ranks[one.rank], one)


def _check_seen(name: str, text: str, rank: RankInfo, placed: Placed) -> None:
    seen = rank.devices if placed.devices is None else placed.devices
    for word in text.split(","):
        if int(word.removeprefix("cuda:")) >= len(seen):
            raise UsageError(
                f"{name} ({word}) is not available to {placed.worker.name}, which sees "
                f"{len(seen)} GPUs of rank {rank.rank} on {rank.host}; give mpirun a "
                "host with it, or use --devices cpu"
            )
