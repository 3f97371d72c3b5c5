"""What a modelled cluster has, and how long each part of it takes."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from tengen.errors import UsageError, did_you_mean

__all__ = ["Cluster", "SelfplayCluster", "changed"]


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Actors of environments, inference, a store and learners. Times are seconds."""

    num_actors: int = 1
    """Actor processes."""
    num_groups: int = 1
    """Groups of an actor's copies, one of which is stepped while another is answered;
    1 to 8."""
    group_rows: int = 1
    """Copies in a group, the rows of a request."""
    step_s: float = 0.016
    """A step of a group, in which the actor does nothing else."""
    step_spread: float = 0.0
    """Standard deviation of a step over its mean, gamma distributed; 0: all alike."""
    actor_cpu_s: float = 0.0
    """Of a core of the actor's host, a step of a group: draws, writes, messages."""
    actors_per_host: int = 0
    """0: all on one host."""
    host_cores: int = 0
    """Of an actors' host; 0: a core each actor."""
    shared_cores: float = 0.0
    """Where above 0, all roles share one host of so many cores, and parts of a core
    are what other programs leave: services take as much longer."""
    link_latency_s: float = 0.0
    """One way, between an actors' host and the others."""
    link_bytes_per_s: float = math.inf
    """Of an actors' host, to the others."""
    link_message_s: float = 0.0
    """What a message costs a link besides its bytes."""
    server_link_bytes_per_s: float = math.inf
    """Of an inference server's host; the actors' messages to it share it."""
    observation_bytes: int = 7056
    """Of a row."""
    answer_bytes: int = 80
    """Of a row."""
    num_servers: int = 1
    """Inference servers; an actor has one of them."""
    batch_s: float = 0.0
    """A batch, whatever its rows."""
    row_s: float = 0.0
    """A row of a batch."""
    request_s: float = 0.0
    """A request of the server's own thread: receiving, gathering, answering."""
    min_rows: int = 1
    """As inference.min_rows."""
    max_wait_s: float = 0.002
    """As inference.max_wait_ms."""
    item_steps: int = 20
    """Steps of an item, which is inserted when the last one was made."""
    queue_items: int = 64
    """Room of the table; actors wait while it is full."""
    num_shards: int = 1
    """Of the store."""
    insert_item_s: float = 0.0
    """An insert, of a shard's thread."""
    insert_byte_s: float = 0.0
    """A byte of an insert, of the same."""
    sample_item_s: float = 0.0
    """An item drawn, of a shard's thread."""
    sample_byte_s: float = 0.0
    """A byte of it."""
    uses: float = 1.0
    """How often an item is drawn."""
    num_learners: int = 1
    """Each has a batch of its own, and all step together."""
    batch_items: int = 16
    """Items of a learner's batch."""
    learn_step_s: float = 0.0
    """A step, whatever its batch."""
    learn_item_s: float = 0.0
    """An item of its batch."""
    parameter_bytes: float = 0.0
    """That several learners add up each step, by a ring."""
    reduce_latency_s: float = 50e-6
    """A message of that ring."""
    reduce_bytes_per_s: float = 1.25e9
    """Of a learner's link to the next."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        for name in ("num_actors", "num_groups", "group_rows", "num_servers"):
            _at_least(self, name, 1)
        for name in ("min_rows", "item_steps", "queue_items", "num_shards"):
            _at_least(self, name, 1)
        for name in ("num_learners", "batch_items"):
            _at_least(self, name, 1)
        _check_times(self)
        if self.uses <= 0:
            raise _refusal("uses", self.uses, "above 0", "a queue has 1")
        drawn = self.num_learners * self.batch_items / self.uses
        if self.queue_items < drawn:
            raise _refusal(
                "queue_items",
                self.queue_items,
                f"{math.ceil(drawn)} or more, what a step of all learners takes",
                "raise it, or lower batch_items",
            )

    @property
    def item_bytes(self) -> float:
        """Of an item."""
        return float(self.item_steps * self.observation_bytes)

    @property
    def reduce_s(self) -> float:
        """What learners take to add up their gradients by a ring."""
        others = self.num_learners - 1
        part = 2 * others / self.num_learners * self.parameter_bytes
        return 2 * others * self.reduce_latency_s + part / self.reduce_bytes_per_s


@dataclass(frozen=True, kw_only=True)
class SelfplayCluster:
    """Hosts that play, one with the games, one that learns, one that gates."""

    num_hosts: int = 1
    """That play."""
    host_cores: int = 2
    """Of each."""
    evaluations_per_core_s: float = 3000.0
    """Of a core of a host, search included."""
    evaluations_per_row: float = 64.0
    """Evaluations a move."""
    rows_per_game: float = 40.0
    """Moves of a game."""
    game_bytes: float = 4000.0
    """A finished game in a segment."""
    link_bytes_per_s: float = 1.25e9
    """Of the store's host, which takes all games."""
    link_latency_s: float = 0.0
    """One way."""
    disk_game_s: float = 0.0
    """A game made durable, with its share of an fsync, on the store's disk."""
    disk_bytes_per_s: float = 1e9
    """Of that disk."""
    samples_per_row: float = 4.0
    """How often the learner may use a row, as store.limiter.samples_per_row."""
    batch_rows: int = 256
    """Of a learner's step."""
    learn_row_s: float = 1e-3
    """A row of a batch."""
    num_learners: int = 1
    """Each takes its part of a batch."""
    parameter_bytes: float = 0.0
    """That learners add up each step."""
    reduce_latency_s: float = 50e-6
    """A message of that ring."""
    reduce_bytes_per_s: float = 1.25e9
    """Of a learner's link to the next."""
    rows_per_candidate: float = 20_000.0
    """New rows between two candidates."""
    gate_games: float = 0.0
    """Games of a match of the gate; 0: every candidate is accepted."""
    gate_cores: int = 2
    """That play the match."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        for name in ("num_hosts", "host_cores", "batch_rows", "num_learners"):
            _at_least(self, name, 1)
        _at_least(self, "gate_cores", 1)
        _check_times(self)
        for name in ("evaluations_per_core_s", "evaluations_per_row", "rows_per_game"):
            if getattr(self, name) <= 0:
                raise _refusal(name, getattr(self, name), "above 0", "correct it")

    @property
    def reduce_s(self) -> float:
        """What learners take to add up their gradients by a ring."""
        others = self.num_learners - 1
        part = 2 * others / self.num_learners * self.parameter_bytes
        return 2 * others * self.reduce_latency_s + part / self.reduce_bytes_per_s


def changed(config: Any, settings: dict[str, Any]) -> Any:
    """Returns a config with some fields changed.

    Raises:
        UsageError: A field is not known, no number, or out of its range.
    """
    known = {field.name: field.type for field in dataclasses.fields(config)}
    values = {}
    for name, value in settings.items():
        if name not in known:
            raise UsageError(
                f"setting ({name}) is not known; {did_you_mean(name, known)}"
            )
        try:
            values[name] = int(value) if known[name] == "int" else float(value)
        except ValueError:
            raise _refusal(name, value, "a number", "correct it") from None
    return dataclasses.replace(config, **values)


def _at_least(config: Any, name: str, least: int) -> None:
    value = getattr(config, name)
    if value < least:
        raise _refusal(name, value, f"{least} or more", "correct it")


def _check_times(config: Any) -> None:
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        is_rate = field.name.endswith("_per_s")
        if math.isnan(value) or value < 0 or (is_rate and value == 0):
            rule = "above 0" if is_rate else "0 or more"
            raise _refusal(field.name, value, rule, "correct it")


def _refusal(name: str, value: Any, rule: str, remedy: str) -> UsageError:
    return UsageError(f"{name} ({value}) must be {rule}; {remedy}")
