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
from tengen.roles import RunConfig, gpus_named

__all__ = [
    "RankInfo",
    "check_alike",
    "check_named_gpus",
    "filled",
    "place",
    "visible_devices",
]

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
    others = [one for one in workers_at_once(config, 1) if one.roles != (acting,)]
    count = len(_free(ranks, _Room(ranks).place(config, others)))
    if count < 1:
        raise _wrong_number(config, ranks, others, 1)
    return with_count(config, acting, count)


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
    acting = config.schedule.acting
    workers = workers_at_once(config, 1)
    players = [one for one in workers if one.roles == (acting,)]
    others = [one for one in workers if one.roles != (acting,)]
    room = _Room(ranks)
    where = room.place(config, others)
    free = _free(ranks, where)
    if len(free) != len(players):
        raise _wrong_number(config, ranks, others, len(players))
    for worker, rank in zip(players, free, strict=True):
        room.take(config, worker, rank)
        where[worker.name] = rank
    _check_doors(config, ranks, workers, where)
    # Divide cores that several ranks share among all processes of these ranks.
    placed = []
    shares = dict.fromkeys((one.host, one.bound_to) for one in ranks)
    for share in shares:
        sharing = [one for one in ranks if (one.host, one.bound_to) == share]
        numbers = {one.rank for one in sharing}
        here = [one for one in workers if where[one.name] in numbers]
        for worker in with_cores(config, here, sharing[0].cores):
            rank = where[worker.name]
            devices = room.devices_of(worker, rank)
            host = ranks[rank].host
            placed.append(Placed(worker=worker, rank=rank, host=host, devices=devices))
    order = {one.name: number for number, one in enumerate(workers)}
    return sorted(placed, key=lambda one: (one.rank, order[one.worker.name]))


def _free(ranks: Sequence[RankInfo], where: dict[str, int]) -> list[int]:
    return [one.rank for one in ranks if one.rank not in {0, *where.values()}]


def _wrong_number(
    config: RunConfig, ranks: Sequence[RankInfo], others: Sequence[Worker], count: int
) -> UsageError:
    acting = config.schedule.acting
    busy = len(ranks) - len(_free(ranks, _Room(ranks).place(config, others)))
    names = ", ".join(role for one in others for role in one.roles)
    needed = busy + count
    with_roles = "rank 0 has" if busy == 1 else f"{busy} ranks have"
    parts = [f"{with_roles} {names}"]
    if acting:
        parts.append(f"{count} {'has' if count == 1 else 'have'} one {acting} each")
    advice = f"use mpirun -n {needed}"
    left = len(ranks) - busy
    if acting and left >= 1 and count != left:
        advice += f", or --set launch.roles.{acting}.count={left}"
    return UsageError(
        f"ranks ({len(ranks)}) must be {needed}: {' and '.join(parts)}; {advice}"
    )


def _check_doors(
    config: RunConfig,
    ranks: Sequence[RankInfo],
    workers: Sequence[Worker],
    where: dict[str, int],
) -> None:
    """Checks that all processes can connect to the learner and to inference."""
    schedule = config.schedule
    hosts = {one.roles[0]: ranks[where[one.name]].host for one in workers}
    home = hosts["learn"]
    _check_listens(config, home, "learners", _hosts(ranks, workers, where, "follow"))
    if not schedule.serving:
        return
    inference = hosts[schedule.serving]
    if home != inference:
        raise UsageError(
            f"launch.roles.{schedule.serving} (on {inference}) must be on the host of "
            f"the learner, {home}; request fewer cores or GPUs for one of them"
        )
    acting = _hosts(ranks, workers, where, schedule.acting)
    _check_listens(config, home, "actors", acting)


def _hosts(
    ranks: Sequence[RankInfo],
    workers: Sequence[Worker],
    where: dict[str, int],
    role: str,
) -> set[str]:
    """Returns the names of the hosts with processes of ``role``."""
    return {ranks[where[one.name]].host for one in workers if one.roles[0] == role}


def _check_listens(config: RunConfig, home: str, who: str, hosts: set[str]) -> None:
    away = hosts - {home}
    if away and not config.launch.listen:
        raise UsageError(
            f"launch.listen (empty) must be an address of {home}, because {who} are on "
            f"{', '.join(sorted(away))}; set it, launch.certificate_file and "
            "launch.key_file"
        )


class _Room:
    """The cores and GPUs of the ranks' hosts that no process has reserved yet."""

    def __init__(self, ranks: Sequence[RankInfo]) -> None:
        self._ranks = ranks
        self._cores = {(one.host, one.bound_to): one.cores for one in ranks}
        self._kept: dict[str, tuple[str, ...]] = {}
        self._kept_on: dict[str, list[str]] = {one.host: [] for one in ranks}

    def place(self, config: RunConfig, workers: Sequence[Worker]) -> dict[str, int]:
        """Assigns processes to ranks; returns a dict from process name to rank."""
        found: dict[str, int] = {}
        for worker in workers:
            lacks = [self._lack(config, worker, one.rank) for one in self._ranks]
            rank = next((rank for rank, lack in enumerate(lacks) if not lack), 0)
            self.take(config, worker, rank)
            found[worker.name] = rank
        return found

    def take(self, config: RunConfig, worker: Worker, rank: int) -> None:
        """Reserves the resources that a process requests on a rank's host.

        Raises:
            UsageError: The rank's host does not have enough resources left.
        """
        lack = self._lack(config, worker, rank)
        if lack:
            raise UsageError(lack)
        asked, one = config.launch.of(worker.given_as), self._ranks[rank]
        self._cores[one.host, one.bound_to] -= asked.num_cpus
        kept = self._free_devices(rank)[: asked.num_gpus]
        self._kept[worker.name] = kept
        self._kept_on[one.host] += kept

    def devices_of(self, worker: Worker, rank: int) -> tuple[str, ...] | None:
        """Returns ``Placed.devices`` of a process. Called after all ``take`` calls."""
        if not self._kept_on[self._ranks[rank].host]:
            return None
        return self._kept[worker.name] or self._free_devices(rank)

    def _free_devices(self, rank: int) -> tuple[str, ...]:
        """Returns the GPUs that are visible to a rank and not reserved."""
        one = self._ranks[rank]
        kept = self._kept_on[one.host]
        return tuple(name for name in one.devices if name not in kept)

    def _lack(self, config: RunConfig, worker: Worker, rank: int) -> str:
        asked, one = config.launch.of(worker.given_as), self._ranks[rank]
        name = f"launch.roles.{worker.given_as}"
        cores = self._cores[one.host, one.bound_to]
        gpus = len(self._free_devices(rank))
        if asked.num_cpus > cores:
            return (
                f"{name}.num_cpus ({asked.num_cpus}) must be at most {cores}, the free "
                f"cores of rank {rank} on {one.host} for {worker.name}; lower it, or "
                "give mpirun --bind-to none or a larger host"
            )
        if asked.num_gpus > gpus:
            return (
                f"{name}.num_gpus ({asked.num_gpus}) must be at most {gpus}, the free "
                f"GPUs of rank {rank} on {one.host} for {worker.name}; lower it, or "
                "give mpirun a host with more GPUs"
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
