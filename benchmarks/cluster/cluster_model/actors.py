"""Actors of environments, who ask central inference and write to a learner's table."""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field

import simpy

from cluster_model.settings import Cluster
from cluster_model.stations import Process, Station, Table

__all__ = ["Result", "bounds", "simulate"]

# Steps that are simulated: enough for means, few enough for seconds.
_MOST_STEPS = 100_000
_LEAST_CYCLES = 12
_LEAST_FILLS = 6
_TINY_S = 1e-12
_WARM_SHARE = 0.4


@dataclass
class Result:
    """What a modelled cluster did, after it was warm."""

    steps_per_s: float
    """Environment steps of all actors."""
    linear: float
    """Of the most that the environments alone would make."""
    answer_s: list[float] = field(default_factory=list)
    """From asking to the answer, each."""
    batch_rows: float = 0.0
    """Rows of a batch of inference, their mean."""
    utilisation: dict[str, float] = field(default_factory=dict)
    """By role, of its busiest station. Inference may be busy all the time by small
    batches and still have room: see ``load``."""
    load: dict[str, float] = field(default_factory=dict)
    """By role, steps a second over what the role alone would let through."""
    table_wait: float = 0.0
    """Share of the actors' time in which the table had no room."""
    items_learned_per_s: float = 0.0
    """Items that learners took, each once."""


class _Model:
    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.env = env = simpy.Environment()
        self.random = random.Random(seed)
        shared = cluster.shared_cores
        # Parts of a core are a slower core, as others take their turns on it.
        self.num_shared = max(1, math.ceil(shared))
        self.slowness = self.num_shared / shared if shared else 1.0
        self.cores = Station(env, self.num_shared) if shared else None
        per_host = cluster.actors_per_host or cluster.num_actors
        num_hosts = -(-cluster.num_actors // per_host)
        cores = cluster.host_cores or per_host
        self.hosts = [self.cores or Station(env, cores) for _ in range(num_hosts)]
        self.links = [Station(env) for _ in range(num_hosts)]
        self.server_links = [Station(env) for _ in range(cluster.num_servers)]
        self.servers = [_Server(self, n) for n in range(cluster.num_servers)]
        self.shards = [Station(env) for _ in range(cluster.num_shards)]
        self.learner = Station(env)
        self.table = Table(env, cluster.queue_items)
        # Nothing travels: what costs no time needs no event.
        self.is_near = not (cluster.link_latency_s or cluster.link_message_s) and (
            math.isinf(cluster.link_bytes_per_s)
            and math.isinf(cluster.server_link_bytes_per_s)
        )
        self.stores_slowly = not self.is_near or bool(
            cluster.insert_item_s or cluster.insert_byte_s
        )
        self.num_steps = 0
        self.answer_s: list[float] = []
        self.table_s = 0.0
        self.is_warm = False

    def compute(self, station: Station, seconds: float) -> simpy.Event:
        """Has a thread of its own work, which needs a core of the host that all share.

        A role waits for its core and its own thread is busy meanwhile.
        """
        if self.cores is None:
            return station.work(seconds)
        span_s = self.cores.reserve(seconds * self.slowness)
        station.reserve(span_s)
        return self.env.timeout(span_s)

    def actor(self, index: int) -> Process:
        """An actor's thread; the order is that of ``drive_in_turns``."""
        cluster, env = self.cluster, self.env
        per_host = cluster.actors_per_host or cluster.num_actors
        host = self.hosts[index // per_host]
        place = index // per_host
        server = self.servers[index % cluster.num_servers]
        asked: deque[tuple[float, simpy.Event]] = deque()
        # Actors begin at different times, and their items with them.
        yield env.timeout(self.random.random() * cluster.step_s)
        left = [
            self.random.randint(1, cluster.item_steps)
            for _ in range(cluster.num_groups)
        ]
        for _ in range(cluster.num_groups):
            asked.append((env.now, self.ask(server, place)))
        group = 0
        while True:
            asked_s, answered = asked.popleft()
            yield answered
            if self.is_warm:
                self.answer_s.append(env.now - asked_s)
            if cluster.actor_cpu_s:
                yield host.work(
                    cluster.actor_cpu_s * (self.slowness if self.cores else 1)
                )
            if cluster.step_s:
                yield env.timeout(self.step_time())
            self.num_steps += cluster.group_rows
            left[group] -= 1
            if left[group] == 0:
                left[group] = cluster.item_steps
                for _ in range(cluster.group_rows):
                    begun_s = env.now
                    yield self.table.put()
                    self.table_s += (env.now - begun_s) if self.is_warm else 0.0
                    if self.stores_slowly:
                        env.process(self.insert(place))
            asked.append((env.now, self.ask(server, place)))
            group = (group + 1) % cluster.num_groups

    def step_time(self) -> float:
        spread = self.cluster.step_spread
        if not spread:
            return self.cluster.step_s
        shape = 1 / spread**2
        return self.random.gammavariate(shape, self.cluster.step_s / shape)

    def ask(self, server: _Server, place: int) -> simpy.Event:
        answered = self.env.event()
        if self.is_near:
            server.take(answered)
        else:
            self.env.process(self.travel(server, place, answered))
        return answered

    def travel(self, server: _Server, place: int, answered: simpy.Event) -> Process:
        cluster = self.cluster
        num_bytes = cluster.group_rows * cluster.observation_bytes
        yield from self.cross(place, server.number, num_bytes)
        server.take(answered)

    def cross(self, place: int, server: int | None, num_bytes: float) -> Process:
        cluster = self.cluster
        if not math.isinf(cluster.link_bytes_per_s) or cluster.link_message_s:
            own_s = num_bytes / cluster.link_bytes_per_s + cluster.link_message_s
            yield self.links[place].work(own_s)
        if server is not None and not math.isinf(cluster.server_link_bytes_per_s):
            far_s = num_bytes / cluster.server_link_bytes_per_s
            yield self.server_links[server].work(far_s)
        if cluster.link_latency_s:
            yield self.env.timeout(cluster.link_latency_s)

    def insert(self, place: int) -> Process:
        cluster = self.cluster
        yield from self.cross(place, None, cluster.item_bytes)
        shard = self.random.choice(self.shards)
        cost_s = cluster.insert_item_s + cluster.insert_byte_s * cluster.item_bytes
        if cost_s:
            yield self.compute(shard, cost_s)

    def learn(self) -> Process:
        """The learners, who step together; a batch is drawn while one is learned."""
        cluster = self.cluster
        drawn = cluster.num_learners * cluster.batch_items
        item_s = cluster.sample_item_s + cluster.sample_byte_s * cluster.item_bytes
        step_s = cluster.learn_step_s + cluster.learn_item_s * cluster.batch_items
        credit = 0.0
        ahead = self.env.process(self.draw(drawn, item_s))
        while True:
            credit += drawn / cluster.uses
            num_new = int(credit)
            credit -= num_new
            if num_new:
                yield self.table.take(num_new)
            yield ahead
            ahead = self.env.process(self.draw(drawn, item_s))
            if step_s or cluster.reduce_s:
                yield self.compute(self.learner, step_s)
                if cluster.reduce_s:
                    yield self.learner.work(cluster.reduce_s)

    def draw(self, num_items: int, item_s: float) -> Process:
        if not item_s:
            return
        share = num_items / len(self.shards) * item_s
        yield self.env.all_of([self.compute(shard, share) for shard in self.shards])

    def restart(self) -> None:
        stations = [*self.hosts, *self.links, *self.server_links, *self.shards]
        stations += [self.learner, *(server.device for server in self.servers)]
        for station in [*stations, *([self.cores] if self.cores else [])]:
            station.restart()
        for server in self.servers:
            server.num_batches = server.num_rows = 0
        self.num_steps, self.table_s, self.table.num_taken = 0, 0.0, 0
        self.is_warm = True


class _Server:
    """Central inference; batches are fired as ``core/inference/row_server.h`` does."""

    def __init__(self, model: _Model, number: int) -> None:
        cluster = model.cluster
        self.number = number
        self.device = Station(model.env)
        self.num_batches = self.num_rows = 0
        self._model = model
        self._most = _most_requests(cluster)
        self._pending: deque[tuple[float, simpy.Event]] = deque()
        self._arrived = model.env.event()
        model.env.process(self._serve())

    def take(self, answered: simpy.Event) -> None:
        """Takes a request."""
        self._pending.append((self._model.env.now, answered))
        if not self._arrived.triggered:
            self._arrived.succeed()

    def _is_due(self) -> bool:
        cluster = self._model.cluster
        if not self._pending:
            return False
        if len(self._pending) * cluster.group_rows >= cluster.min_rows:
            return True
        waited_s = self._model.env.now - self._pending[0][0]
        return (
            len(self._pending) >= self._most or waited_s >= cluster.max_wait_s - 1e-12
        )

    def _serve(self) -> Process:
        env, cluster = self._model.env, self._model.cluster
        while True:
            while not self._is_due():
                self._arrived = env.event()
                if not self._pending:
                    yield self._arrived
                    continue
                left_s = self._pending[0][0] + cluster.max_wait_s - env.now
                yield env.any_of([self._arrived, env.timeout(max(0.0, left_s))])
            requests, self._pending = self._pending, deque()
            num_rows = len(requests) * cluster.group_rows
            self.num_batches += 1
            self.num_rows += num_rows
            service_s = cluster.batch_s + cluster.row_s * num_rows
            service_s += cluster.request_s * len(requests)
            if service_s:
                yield self._model.compute(self.device, service_s)
            answered = [answered for _, answered in requests]
            if cluster.link_latency_s:
                env.process(self._answer_later(answered))
            else:
                for one in answered:
                    one.succeed()

    def _answer_later(self, answered: list[simpy.Event]) -> Process:
        yield self._model.env.timeout(self._model.cluster.link_latency_s)
        for one in answered:
            one.succeed()


def simulate(cluster: Cluster, seed: int = 0, most_steps: int = _MOST_STEPS) -> Result:
    """Returns what a cluster does; the same seed gives the same numbers.

    Args:
        cluster: The cluster.
        seed: Of the steps' times and of where actors begin.
        most_steps: That are simulated, about.
    """
    model = _Model(cluster, seed)
    for index in range(cluster.num_actors):
        model.env.process(model.actor(index))
    model.env.process(model.learn())
    linear = _linear(cluster)
    until_s = _horizon_s(cluster, most_steps)
    model.env.run(until_s * _WARM_SHARE)
    model.restart()
    begun_s = model.env.now
    model.env.run(until_s)
    span_s = model.env.now - begun_s
    rate = model.num_steps / span_s
    num_batches = sum(server.num_batches for server in model.servers)
    num_rows = sum(server.num_rows for server in model.servers)
    return Result(
        steps_per_s=rate,
        linear=rate / linear,
        answer_s=model.answer_s,
        batch_rows=num_rows / max(1, num_batches),
        utilisation=_utilisation(model),
        load={role: rate / most for role, most in bounds(cluster).items()},
        table_wait=model.table_s / (span_s * cluster.num_actors),
        items_learned_per_s=model.table.num_taken / span_s,
    )


def _utilisation(model: _Model) -> dict[str, float]:
    def busiest(stations: list[Station]) -> float:
        return max(station.utilisation() for station in stations)

    found = {
        "inference": busiest([server.device for server in model.servers]),
        "network": busiest([*model.links, *model.server_links]),
        "store": busiest(model.shards),
        "learner": model.learner.utilisation(),
    }
    if model.cores is not None:
        return {"cores": model.cores.utilisation(), **found}
    return {"actor hosts": busiest(model.hosts), **found}


def bounds(cluster: Cluster) -> dict[str, float]:
    """Returns steps a second that each part alone would let through, by role.

    What queueing costs beside is what the simulation adds.
    """
    rows, item_steps = cluster.group_rows, cluster.item_steps
    num_bytes = cluster.observation_bytes + cluster.item_bytes / item_steps
    request_s = (cluster.batch_s / _most_requests(cluster) + cluster.request_s) / rows
    per_host = cluster.actors_per_host or cluster.num_actors
    num_hosts = -(-cluster.num_actors // per_host)
    link_s = num_bytes / cluster.link_bytes_per_s + 2 * cluster.link_message_s / rows
    far_s = cluster.observation_bytes / cluster.server_link_bytes_per_s
    stored_s = cluster.insert_item_s + cluster.insert_byte_s * cluster.item_bytes
    drawn_s = cluster.sample_item_s + cluster.sample_byte_s * cluster.item_bytes
    store_s = (stored_s + drawn_s * cluster.uses) / item_steps
    learn_s = cluster.learn_step_s + cluster.learn_item_s * cluster.batch_items
    own_s = (learn_s + cluster.reduce_s) * cluster.uses
    own_s /= cluster.num_learners * cluster.batch_items * item_steps
    found = {
        "environments": _linear(cluster),
        "inference": cluster.num_servers / max(cluster.row_s + request_s, _TINY_S),
        "network": min(
            num_hosts / max(link_s, _TINY_S), cluster.num_servers / max(far_s, _TINY_S)
        ),
        "store": cluster.num_shards / max(store_s, _TINY_S),
        "learner": 1 / max(own_s, _TINY_S),
    }
    if cluster.shared_cores:
        one_s = cluster.actor_cpu_s / rows + cluster.row_s + request_s + store_s
        one_s += learn_s * cluster.uses / (cluster.batch_items * item_steps)
        found["cores"] = cluster.shared_cores / max(one_s, _TINY_S)
    else:
        cores = cluster.host_cores or per_host
        host_s = cluster.actor_cpu_s / rows
        found["actor hosts"] = num_hosts * cores / max(host_s, _TINY_S)
    return found


def _most_requests(cluster: Cluster) -> int:
    """Returns the requests that one server may find waiting at once."""
    return -(-cluster.num_actors // cluster.num_servers) * cluster.num_groups


def _linear(cluster: Cluster) -> float:
    """Returns steps a second of the environments alone."""
    alone_s = cluster.step_s + (0 if cluster.shared_cores else cluster.actor_cpu_s)
    return cluster.num_actors * cluster.group_rows / max(alone_s, _TINY_S)


def _horizon_s(cluster: Cluster, most_steps: int) -> float:
    """Returns for how long to simulate: the slowest part sets how much is done."""
    rate = min(bounds(cluster).values())
    rows = cluster.num_actors * cluster.group_rows * cluster.num_groups
    filled = min(
        _LEAST_FILLS * cluster.queue_items * cluster.item_steps, 4 * most_steps
    )
    return max(most_steps, _LEAST_CYCLES * rows, filled) / rate
