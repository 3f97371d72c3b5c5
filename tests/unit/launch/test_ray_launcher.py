"""The Ray launcher on a cluster of this process: refusals, requests and losses."""

import importlib
import threading
import time

import pytest

from tengen.errors import RunError, UsageError
from tengen.launch import Budget, launcher_of, train_by
from tengen.launch.process import Processes
from tengen.launch.workers import Worker, workers_at_once
from tengen.observe import read_hosts
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import StopListener, write_config
from tengen.run import RunDirectory
from tests.integration.runs import wait_for
from tests.refusals import refused
from tests.unit.launch.children import the_hub
from tests.unit.launch.fake_ray import FakeCluster
from tests.unit.launch.fake_roles import Journal, called, config

__all__ = ["the_hub"]

CORE = ("learn", "export", "gate", "rate")
LISTENS = "launch.listen=127.0.0.1:7300"


@pytest.fixture
def cluster(monkeypatch):
    return lambda **hosts: FakeCluster(monkeypatch, **hosts)


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create_or_resume(tmp_path / "run")


def fit(made, *, keeps_count):
    return launcher_of("ray").fit(made, keeps_count=keeps_count)


def ray_launcher(made, run):
    module = importlib.import_module("tengen.launch.ray")
    write_config(run, made)
    return module.RayLauncher(made, run, module.nodes_of(module.ray.nodes()))


def start(fake, launcher, hub, run, worker):
    """Starts a process; returns what is asked for it."""
    Processes(launcher, hub, run, None).start(worker)._start()
    return fake.actors[-1]


def environment(*settings):
    pytest.importorskip("gymnasium")
    return override(make_config("CartPole-v1", "ppo", None), list(settings))


@pytest.fixture
def started(hub, run):
    """Starts every process of a run; returns what is asked for each, by its name."""

    def start_all(fake, launcher, made):
        workers = workers_at_once(made, 1)
        return {one.name: start(fake, launcher, hub, run, one) for one in workers}

    return start_all


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({"tengen": "0.0.1"}, "host (b)"),
        (
            {"error": "no module"},
            "host (b)",
        ),
    ],
)
def test_a_host_that_has_another_tengen_or_none_is_refused(cluster, said, line):
    cluster(a=(4, 0), b=(4, 0)).said["b"] = said
    with refused(UsageError, line):
        fit(config(), keeps_count=False)


def test_self_play_is_as_many_as_hosts_unless_a_number_was_typed(cluster):
    cluster(a=(4, 0), b=(4, 0), c=(4, 0), head=(0, 0))
    assert fit(config(), keeps_count=False).launch.of("selfplay").count == 3
    assert fit(config(), keeps_count=True).launch.of("selfplay").count == 1


def test_what_can_never_fit_is_refused_unless_hosts_may_come(cluster):
    cluster(a=(2, 0), b=(2, 0))
    roles = ("learn", "inference")
    made = environment(*(f"launch.roles.{role}.num_cpus=2" for role in roles))
    with refused(
        UsageError, "launch.roles.learn, launch.roles.inference (4 cores, 0 GPUs)"
    ):
        fit(made, keeps_count=True)
    fit(override(made, ["launch.grows=true"]), keeps_count=True)


def test_hosts_without_the_run_need_an_address(cluster, run):
    cluster(a=(4, 0), b=(4, 0)).lacking.add("b")
    with refused(UsageError, "is missing on host b"):
        ray_launcher(config(), run)


def test_actors_of_several_hosts_need_an_address(cluster, run):
    cluster(a=(4, 0), b=(4, 0))
    with refused(UsageError, "must be set for actors of 2"):
        ray_launcher(environment(), run)
    ray_launcher(environment(LISTENS), run).close()


def test_one_group_has_what_learns_and_each_host_its_self_play(
    cluster, run, hub, started
):
    fake = cluster(a=(4, 0), b=(4, 0))
    made = fit(config(), keeps_count=False)
    launcher = ray_launcher(made, run)
    actors = started(fake, launcher, made)
    ((bundles, strategy),) = fake.groups
    assert strategy == "PACK"
    assert [bundle["CPU"] for bundle in bundles] == [0.992, 0.01, 0.01, 0.01]
    assert {actors[name].host for name in CORE} == {"a"}
    played = {actors[f"selfplay-{index}"].host for index in range(2)}
    assert played == {"a", "b"}
    threads = {one.host: one.threads for one in fake.of("selfplay")}
    assert threads == {"a": 3, "b": 4}
    # One that comes by tengen scale is as the first, wherever there is room.
    late = Worker(name="selfplay-2", roles=("selfplay",), index=2)
    assert (
        start(fake, launcher, hub, run, late).options["scheduling_strategy"] == "SPREAD"
    )
    launcher.close()
    assert not any(number < 0 for number in fake.held)


def test_what_listens_is_on_one_host_and_actors_are_anywhere(cluster, run, started):
    fake = cluster(a=(4, 0), b=(4, 0))
    made = environment(LISTENS, "launch.roles.actor.count=4")
    actors = started(fake, ray_launcher(made, run), made)
    assert fake.groups[0][1] == "STRICT_PACK"
    assert actors["learn"].host == actors["inference-0"].host
    strategies = [one.options["scheduling_strategy"] for one in fake.of("actor")]
    assert strategies == ["SPREAD"] * 4
    assert all(one.host for one in fake.actors)


def test_where_others_lack_the_run_what_keeps_files_is_here_or_nowhere(
    cluster, run, started
):
    fake = cluster(home=(2, 0), far=(8, 0))
    fake.lacking.add("far")
    made = fit(override(config(), [LISTENS]), keeps_count=False)
    actors = started(fake, ray_launcher(made, run), made)
    ((bundles, strategy),) = fake.groups
    assert strategy == "STRICT_PACK"
    assert all(bundle["node:home"] > 0 for bundle in bundles)
    assert {actors[name].host for name in CORE} == {"home"}
    assert not actors["learn"].has_address
    far = [one for one in fake.of("selfplay") if one.host == "far"]
    assert [(one.threads, one.has_address) for one in far] == [(8, True)]


@pytest.mark.parametrize("setting", ["num_gpus=1", "num_cpus=3"])
def test_a_home_without_what_the_learner_asks_for_is_refused(cluster, run, setting):
    cluster(home=(2, 0), far=(8, 1)).lacking.add("far")
    made = override(config(), [LISTENS, f"launch.roles.learn.{setting}"])
    made = fit(made, keeps_count=False)
    with refused(UsageError, "no room on host home"):
        ray_launcher(made, run)


def trained(run, made, budget, journal):
    """Trains by Ray; returns what it raised."""
    made = fit(made, keeps_count=False)
    write_config(run, made)
    with StopListener(run) as stop:
        try:
            train_by("ray", called(made, run, budget, journal, stop))
        except RunError as error:
            return error
    return None


class Deaths(Journal):
    def __init__(self):
        super().__init__()
        self.deaths: list[str] = []

    def death(self, role, how):
        self.deaths.append(role)


def after(cluster, role, num, work):
    """Does something once a role has begun so often, by a thread of its own."""

    def run():
        wait_for(lambda: sum(bool(one.host) for one in cluster.of(role)) >= num)
        time.sleep(0.2)
        work()

    threading.Thread(target=run, daemon=True).start()


def test_what_learns_moves_to_a_host_that_is_left(cluster, run):
    """Which has room for it, though self-play is there."""
    fake = cluster(a=(4, 0), b=(4, 0))
    after(fake, "selfplay", 2, lambda: fake.lose("a"))
    after(fake, "learn", 2, run.request_stop)
    journal = Deaths()
    assert trained(run, config(), Budget(), journal) is None
    assert {"learn", "export", "gate"} <= set(journal.deaths)
    assert [one.host for one in fake.of("learn")] == ["a", "b"]
    hosts = read_hosts(run)
    assert hosts is not None
    assert {one.host for one in hosts.places if one.name == "learn"} == {"b"}


@pytest.fixture
def told_at_once(monkeypatch):
    """What has no room in the cluster says so at once, and not after ten seconds."""
    monkeypatch.setattr("tengen.launch.joined._WAITING_S", 0.05)


@pytest.mark.usefixtures("told_at_once")
def test_a_learner_that_never_has_a_host_again_ends_the_run(cluster, run):
    fake = cluster(a=(8, 1), b=(4, 0))
    after(fake, "learn", 1, lambda: fake.lose("a"))
    settings = ("launch.roles.learn.num_gpus=1", "launch.wait_minutes=0.02")
    journal = Deaths()
    error = trained(run, config(*settings), Budget(), journal)
    line = (
        "role (learn, export, gate) has waited for cluster resources for 0.02 minutes"
    )
    assert str(error).startswith(line)
    assert "learn" in {name for names in journal.waits for name in names}
    # Self-play went on meanwhile, and ends with it.
    assert journal.of("selfplay")
    assert all(one.is_dead for one in fake.actors)


@pytest.mark.usefixtures("told_at_once")
def test_a_run_that_never_has_room_ends_with_its_time(cluster, run):
    """Other work has the GPU, which the cluster has, so that nothing was refused."""
    fake = cluster(a=(4, 1))
    fake.held[0] = [("a", {"GPU": 1.0})]
    made = config("launch.roles.learn.num_gpus=1")
    journal = Deaths()
    error = trained(run, made, Budget(minutes=0.02), journal)
    line = "role (learn, export, gate) never had room in the cluster when the budget "
    assert str(error).startswith(line)
    assert all(one.is_dead for one in fake.actors)
    # And once the other work has ended the same command trains.
    del fake.held[0]
    assert trained(run, made, Budget(minutes=0.02), journal) is None


@pytest.mark.usefixtures("told_at_once")
def test_room_that_comes_late_is_taken(cluster, run):
    fake = cluster(a=(1, 0))
    made = config("launch.roles.learn.num_gpus=1", "launch.grows=true")
    journal = Deaths()

    def grow():
        wait_for(lambda: journal.waits)
        fake.add("b", 4, 1)

    threading.Thread(target=grow, daemon=True).start()
    assert trained(run, made, Budget(games=10), journal) is None
    assert journal.waits[-1] == []
    assert fake.of("learn")[-1].host == "b"
