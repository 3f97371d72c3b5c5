"""A Ray cluster of this process: hosts with cores, room for actors, and hosts lost."""

import contextlib
import sys
import threading
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from types import ModuleType, SimpleNamespace
from typing import Any

from tengen import __version__
from tengen.errors import TengenError
from tengen.launch.messages import Begun, Report, Turn
from tengen.launch.wire import join

HOME = "node-home"
_MODULES = ("tengen.launch.ray", "tengen.launch.cluster.connection")


class RayError(Exception):
    """As ``ray.exceptions.RayError``."""


class ActorDiedError(RayError):
    """Of an actor that is gone."""


class FakeCluster:
    """What of Ray the launcher uses, with room for so much as its hosts have.

    Args:
        monkeypatch: Puts it in Ray's place, whether that is installed or not.
        hosts: Cores and GPUs by name; the command is on the first.

    Attributes:
        lacking: Hosts without the run directory.
        said: What a host says else than it should, by name.
        groups: The bundles and the strategy of each placement group.
        actors: All that ever were asked for, in order.
        held: What each group, below 0, and each actor holds, and on which host.
    """

    def __init__(self, monkeypatch, **hosts):
        self.lacking: set[str] = set()
        self.said: dict[str, dict[str, str]] = {}
        self.groups: list[tuple[list[dict[str, float]], str]] = []
        self.actors: list[FakeActor] = []
        self._lock = threading.RLock()
        self._hosts = dict(hosts)
        self._home = next(iter(hosts))
        self._lost: set[str] = set()
        self.held: dict[int, list[tuple[str, dict[str, float]]]] = {}
        self._waiting: list[tuple[int, Any]] = []
        self._install(monkeypatch)

    def lose(self, host):
        """Takes a host away, with all that is on it."""
        with self._lock:
            self._lost.add(host)
            for actor in self.actors:
                if actor.host == host:
                    actor.die()
            for number, held in list(self.held.items()):
                if number < 0 and any(node == host for node, _ in held):
                    del self.held[number]
                    self._waiting.insert(0, (number, None))
            self._place()

    def add(self, name, num_cpus, num_gpus=0):
        """Adds a host."""
        with self._lock:
            self._hosts[name] = (num_cpus, num_gpus)
            self._place()

    def of(self, role):
        """Returns the actors that had a role, in order."""
        return [one for one in self.actors if one.roles[0] == role]

    def free(self, host):
        """Returns what nobody holds of a host."""
        num_cpus, num_gpus = self._hosts[host]
        left = {"CPU": num_cpus, "GPU": num_gpus, f"node:{host}": 1.0}
        for held in self.held.values():
            for node, asked in held:
                if node == host:
                    for name, amount in asked.items():
                        left[name] = left.get(name, 0.0) - amount
        return left

    def release(self, actor):
        """Takes back what an actor holds; what waits may have it."""
        with self._lock:
            self.held.pop(actor.number, None)
            self._waiting = [one for one in self._waiting if one[0] != actor.number]
            self._place()

    def begin(self, actor):
        """Begins an actor, or has it wait."""
        with self._lock:
            self.actors.append(actor)
            actor.number = len(self.actors)
            self._waiting.append((actor.number, actor))
            self._place()

    def _alive(self):
        return [name for name in self._hosts if name not in self._lost]

    def _fits(self, host, asked):
        free = self.free(host)
        return all(free.get(name, 0.0) >= one - 1e-6 for name, one in asked.items())

    def _place(self):
        for number, actor in list(self._waiting):
            held = self._group(number) if actor is None else self._actor(actor)
            if held is not None:
                self._waiting.remove((number, actor))
                self.held[number] = held
                if actor is not None:
                    actor.live(held[0][0])

    def _group(self, number):
        bundles, strategy = self.groups[-number - 1]
        total: dict[str, float] = {}
        for bundle in bundles:
            for name, amount in bundle.items():
                total[name] = total.get(name, 0.0) + amount
        for host in self._alive():
            if self._fits(host, total):
                return [(host, bundle) for bundle in bundles]
        if strategy == "STRICT_PACK":
            return None
        placed: list[tuple[str, dict[str, float]]] = []
        for bundle in bundles:
            self.held[number] = placed
            hosts = [host for host in self._alive() if self._fits(host, bundle)]
            del self.held[number]
            if not hosts:
                return None
            placed.append((hosts[0], bundle))
        return placed

    def _actor(self, actor):
        strategy = actor.options["scheduling_strategy"]
        asked = {"CPU": actor.options["num_cpus"], "GPU": actor.options["num_gpus"]}
        if getattr(strategy, "group", None) is not None:
            held = self.held.get(strategy.group)
            if held is None:
                return None
            host, bundle = held[strategy.bundle]
            assert all(bundle.get(name, 0.0) >= one for name, one in asked.items())
            return [(host, {})]
        hosts = self._alive()
        if (wanted := getattr(strategy, "node", "")[5:]) and (
            wanted in hosts or not strategy.soft
        ):
            hosts = [wanted] if wanted in hosts else []
        for host in hosts:
            if self._fits(host, asked):
                return [(host, asked)]
        return None

    def _ask(self, task, node):
        host = node.removeprefix("node-")
        found = {"host": host, "python": "3.11", "error": "", "tengen": __version__}
        found["has_run"] = "" if host in self.lacking else "yes"
        answer: Future[Any] = Future()
        answer.set_result(found | self.said.get(host, {}))
        return answer

    def _nodes(self):
        return [
            {
                "NodeID": f"node-{name}",
                "NodeManagerHostname": name,
                "NodeManagerAddress": name,
                "Alive": name not in self._lost,
                "Resources": {"CPU": num_cpus, "GPU": num_gpus},
            }
            for name, (num_cpus, num_gpus) in self._hosts.items()
        ]

    def _make_group(self, bundles, strategy):
        with self._lock:
            self.groups.append((bundles, strategy))
            number = -len(self.groups)
            self._waiting.append((number, None))
            self._place()
            return number

    def _remove_group(self, number):
        with self._lock:
            self.held.pop(number, None)
            self._waiting = [one for one in self._waiting if one[0] != number]

    def _remote(self, **options):
        def make(target):
            if isinstance(target, type):
                return SimpleNamespace(
                    options=lambda **asked: SimpleNamespace(
                        remote=lambda *words: FakeActor(self, asked, words)
                    )
                )
            return SimpleNamespace(
                options=lambda scheduling_strategy: SimpleNamespace(
                    remote=lambda *words: self._ask("probe", scheduling_strategy.node)
                )
            )

        return make

    def _install(self, monkeypatch):
        def get(refs, timeout=None):
            if isinstance(refs, list):
                return [ref.result(timeout) for ref in refs]
            return refs.result(timeout)

        def wait(refs, timeout):
            done, others = wait_for_futures(refs, timeout)
            return list(done), list(others)

        def affinity(node, soft):
            return SimpleNamespace(node=node, soft=soft)

        def of_group(group, placement_group_bundle_index):
            return SimpleNamespace(group=group, bundle=placement_group_bundle_index)

        home = SimpleNamespace(get_node_id=lambda: f"node-{self._home}")
        modules = {
            "ray": {
                "exceptions": SimpleNamespace(RayError=RayError),
                "get": get,
                "get_runtime_context": lambda: home,
                "is_initialized": lambda: True,
                "kill": lambda actor: actor.die(),
                "method": lambda concurrency_group: lambda function: function,
                "nodes": self._nodes,
                "remote": self._remote,
                "wait": wait,
            },
            "ray.util": {"get_node_ip_address": lambda: "127.0.0.1"},
            "ray.util.placement_group": {
                "placement_group": self._make_group,
                "remove_placement_group": self._remove_group,
            },
            "ray.util.scheduling_strategies": {
                "NodeAffinitySchedulingStrategy": affinity,
                "PlacementGroupSchedulingStrategy": of_group,
            },
        }
        for name, members in modules.items():
            module = ModuleType(name)
            vars(module).update(members)
            monkeypatch.setitem(sys.modules, name, module)
        # Imported anew with it, and again once it is gone.
        for name in _MODULES:
            monkeypatch.delitem(sys.modules, name, raising=False)
        launch = sys.modules["tengen.launch"]
        monkeypatch.delattr(launch, "ray", raising=False)


class FakeActor:
    """An actor with a role process that plays, or finds nothing to do."""

    def __init__(self, cluster, options, words):
        self.options = options
        _, _, command, self._environment = words
        self.threads = int(command[command.index("--") + 2])
        self.roles = command[command.index("--") + 3 :]
        self.has_address = any(word.startswith("--connect=") for word in command)
        self.number = 0
        self.host = ""
        self.is_dead = False
        self._cluster = cluster
        self._begun: Future[Any] = Future()
        self._ended: Future[Any] = Future()
        self.begun = SimpleNamespace(remote=lambda: self._begun)
        self.wait = SimpleNamespace(remote=lambda: self._ended)
        self.kill = SimpleNamespace(remote=self.die)
        cluster.begin(self)

    def live(self, host):
        self.host = host
        self._begun.set_result(None)
        threading.Thread(target=self._work, daemon=True).start()

    def die(self):
        if self.is_dead:
            return
        self.is_dead = True
        self._cluster.release(self)
        for ref in (self._begun, self._ended):
            if not ref.done():
                ref.set_exception(ActorDiedError(f"{self.roles[0]} is gone"))

    def _work(self):
        begun = Begun(1, self.host, f"node {self.host}")
        try:
            stream = join(dict(self._environment), begun)
        except TengenError:
            return  # it is no longer wanted
        while not self.is_dead:
            try:
                message = stream.receive(0.05)
            except TimeoutError:
                continue
            if not isinstance(message, Turn):
                break
            report: dict[str, Any] | None = None
            if message.role == "selfplay":
                report = {"num_games": 10, "num_recovered": 0, "generation": 1}
                report |= {"num_rows": 10, "num_evaluations": 10}
            with contextlib.suppress(OSError):  # the runner has ended
                stream.send(Report(report))
        if not self._ended.done():
            self._ended.set_result(0)
        stream.close()
