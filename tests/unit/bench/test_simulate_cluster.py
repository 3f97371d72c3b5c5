"""The model of clusters against what is known of queues, and the limits it names."""

import dataclasses
import itertools
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

simpy = pytest.importorskip("simpy", reason="simpy is not installed")

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
sys.path.append(str(BENCHMARKS / "cluster"))

import simulate_measure  # noqa: E402
import simulate_validate  # noqa: E402
from cluster_model.actors import bounds, simulate  # noqa: E402
from cluster_model.games import simulate_games  # noqa: E402
from cluster_model.limits import REMEDIES, limit_of, limit_of_games  # noqa: E402
from cluster_model.settings import Cluster, SelfplayCluster, changed  # noqa: E402
from cluster_model.stations import Station, Table  # noqa: E402

from tengen.errors import UsageError  # noqa: E402
from tengen.overrides import override  # noqa: E402
from tengen.recipes import make_config  # noqa: E402

FEW = 6_000
"""Steps that are simulated where the answer is exact or close to it."""


def measured_wait(num_servers: int, load: float, num_jobs: int) -> tuple[float, float]:
    """Returns the mean wait and utilisation of random arrivals, each served for 1 s."""
    env = simpy.Environment()
    station = Station(env, num_servers)
    draws = random.Random(1)
    waits = []

    def job():
        begun_s = env.now
        yield station.work(1.0)
        waits.append(env.now - begun_s - 1.0)

    def arrivals():
        for _ in range(num_jobs):
            yield env.timeout(draws.expovariate(load * num_servers))
            env.process(job())

    env.process(arrivals())
    env.run()
    return sum(waits) / len(waits), station.utilisation()


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_a_station_waits_as_pollaczek_and_khinchine_say(load):
    wait_s, utilisation = measured_wait(1, load, 20_000)
    assert wait_s == pytest.approx(load / (2 * (1 - load)), rel=0.1)
    assert utilisation == pytest.approx(load, rel=0.02)


def test_two_servers_wait_less_than_one_as_fast_each():
    # M/D/2 at a load of 0.7: 0.476 s; of one server, 1.167 s (Tijms, "A First Course in
    # Stochastic Models", by Cosmetatos' approximation, within 2 %).
    wait_s, _ = measured_wait(2, 0.7, 20_000)
    mm2 = 0.7**2 / (1 - 0.7**2)
    cosmetatos = 0.5 * mm2 * (1 + 0.3 / 0.7 * 1 * ((4 + 5 * 2) ** 0.5 - 2) / (16 * 2))
    assert wait_s == pytest.approx(cosmetatos, rel=0.1)


def test_utilisation_counts_what_lies_within_the_look():
    env = simpy.Environment()
    station = Station(env, 2)
    for seconds in (4.0, 8.0, 2.0):
        station.work(seconds)
    env.run(until=5)
    station.restart()  # 8 s is half done; 2 s began at 4
    env.run(until=10)
    assert station.utilisation() == pytest.approx((3 + 1) / 10)


def test_a_table_lets_in_what_has_room():
    env = simpy.Environment()
    table = Table(env, 2)
    puts = [table.put() for _ in range(3)]
    env.run(until=1)
    assert [put.triggered for put in puts] == [True, True, False]
    taken = table.take(2)
    env.run(until=2)
    assert taken.triggered
    assert puts[2].triggered


def test_one_actor_makes_a_step_a_round_trip():
    cluster = Cluster(
        step_s=0.01,
        batch_s=0.001,
        row_s=0.002,
        request_s=0.0005,
        actor_cpu_s=0.0015,
        link_latency_s=0.003,
        link_bytes_per_s=7056 / 0.004,
        item_steps=10**6,
    )
    found = simulate(cluster, most_steps=FEW // 10)
    assert found.steps_per_s == pytest.approx(1 / (0.015 + 0.01), rel=0.01)
    assert found.answer_s[0] == pytest.approx(0.0035 + 0.006 + 0.004)


@pytest.mark.parametrize("num_actors", [2, 5, 20, 80])
def test_a_closed_network_keeps_its_bounds_and_laws(num_actors):
    step_s, row_s = 0.016, 0.001
    cluster = Cluster(num_actors=num_actors, step_s=step_s, row_s=row_s, step_spread=1)
    found = simulate(cluster, most_steps=FEW)
    most = min(num_actors / (step_s + row_s), 1 / row_s)
    assert found.steps_per_s <= most * 1.03
    # Little's law: actors are in a step or wait for an answer.
    mean_s = sum(found.answer_s) / len(found.answer_s)
    assert found.steps_per_s * (step_s + mean_s) == pytest.approx(num_actors, rel=0.03)
    # The utilisation law.
    used = found.steps_per_s * row_s
    assert found.utilisation["inference"] == pytest.approx(used, rel=0.03)
    if num_actors == 80:
        assert found.steps_per_s == pytest.approx(1 / row_s, rel=0.02)


def test_batches_are_fired_by_their_rows_or_the_oldest_wait():
    fields = {"num_actors": 8, "step_s": 0.01, "batch_s": 0.004, "row_s": 0.0005}
    for min_rows, waits_s in ((8, 0.0), (9, 0.0), (1, None)):
        cluster = Cluster(**fields, min_rows=min_rows, max_wait_s=0.05)
        found = simulate(cluster, most_steps=FEW // 4)
        if waits_s is None:
            assert found.batch_rows < 8
            continue
        # All eight in lock step, who are all that there are.
        cycle_s = 0.01 + 0.004 + 8 * 0.0005
        assert found.batch_rows == pytest.approx(8)
        assert found.steps_per_s == pytest.approx(8 / cycle_s, rel=0.02)
    # Of sixteen with steps of very different length, the oldest waits no longer.
    slow = Cluster(
        num_actors=16, step_s=0.1, step_spread=1, min_rows=16, max_wait_s=0.005
    )
    found = simulate(slow, most_steps=FEW // 4)
    assert max(found.answer_s) == pytest.approx(0.005)
    assert found.batch_rows < 4


def test_two_groups_step_while_they_are_answered():
    fields = {"step_s": 0.01, "batch_s": 0.009, "item_steps": 10**6}
    one = simulate(Cluster(**fields), most_steps=FEW // 10)
    two = simulate(Cluster(**fields, num_groups=2), most_steps=FEW // 10)
    assert one.steps_per_s == pytest.approx(1 / 0.019, rel=0.01)
    assert two.steps_per_s == pytest.approx(1 / 0.01, rel=0.01)
    assert limit_of(one) == "answers"
    assert limit_of(two) == "environments"


SPARE = {"num_actors": 50, "queue_items": 32, "row_s": 1e-5, "learn_item_s": 1e-5}
PLANTED = [
    ("environments", {}),
    ("inference", {"row_s": 0.001}),
    ("inference", {"request_s": 0.0005}),
    ("learner", {"learn_item_s": 0.01}),
    ("learner", {"num_learners": 2, "learn_step_s": 0.001, "parameter_bytes": 1e9}),
    ("store", {"sample_item_s": 0.01}),
    ("network", {"link_bytes_per_s": 1e7}),
    ("network", {"server_link_bytes_per_s": 1e7}),
    ("actor hosts", {"host_cores": 1, "actor_cpu_s": 0.001}),
    ("cores", {"shared_cores": 1.5, "actor_cpu_s": 0.001}),
    ("answers", {"link_latency_s": 0.02}),
]


@pytest.mark.parametrize(("limit", "fields"), PLANTED)
def test_a_planted_limit_is_named_and_its_remedy_helps(limit, fields):
    cluster = Cluster(**SPARE | fields)
    found = simulate(cluster, most_steps=FEW)
    assert limit_of(found) == limit
    assert limit in REMEDIES
    most = min(bounds(cluster).values())
    assert found.steps_per_s <= most * 1.03
    if limit not in ("environments", "answers"):
        assert found.steps_per_s == pytest.approx(most, rel=0.15)


def test_what_to_add_names_settings_that_a_run_has():
    made = make_config("CartPole-v1", "vtrace", None)
    named = {
        limit: re.findall(r"\b((?:launch|agent)(?:\.[a-z_]+)+)(?:=(\w+))?", text)
        for limit, text in REMEDIES.items()
    }
    assert ("launch.roles.inference.count", "2") in named["inference"]
    assert ("launch.roles.learn.count", "2") in named["learner"]
    for name, value in itertools.chain(*named.values()):
        override(made, [f"{name}={value or '127.0.0.1:7000'}"])


def test_a_second_server_shard_or_learner_lifts_its_limit():
    for fields, more in (
        ({"row_s": 0.001}, {"num_servers": 2}),
        ({"sample_item_s": 0.02}, {"num_shards": 2}),
        ({"learn_item_s": 0.02}, {"num_learners": 2}),
    ):
        one = simulate(Cluster(**SPARE | fields), most_steps=FEW)
        two = simulate(Cluster(**SPARE | fields | more), most_steps=FEW)
        assert two.steps_per_s == pytest.approx(2 * one.steps_per_s, rel=0.1)


def test_learners_add_up_by_a_ring():
    cluster = Cluster(
        num_learners=4,
        parameter_bytes=4e6,
        reduce_bytes_per_s=1e9,
        reduce_latency_s=1e-4,
    )
    assert cluster.reduce_s == pytest.approx(6 * 1e-4 + 1.5 * 4e6 / 1e9)
    assert Cluster().reduce_s == 0


@pytest.mark.parametrize(
    ("limit", "fields"),
    [
        ("self-play", {"num_hosts": 2}),
        ("learner", {"num_hosts": 100}),
        ("gate", {"num_hosts": 4, "gate_games": 4000, "learn_row_s": 1e-5}),
        ("store", {"num_hosts": 50, "disk_game_s": 0.02, "learn_row_s": 1e-6}),
        ("network", {"num_hosts": 50, "link_bytes_per_s": 4e5, "learn_row_s": 1e-6}),
    ],
)
def test_self_play_names_its_limit(limit, fields):
    found = simulate_games(SelfplayCluster(**fields), most_games=6000)
    assert limit_of_games(found) == limit
    if limit == "self-play":
        # 2 hosts of 2 cores, 3,000 evaluations each, of 64 a row; 4 uses.
        rows = found.games_per_s * 40
        assert rows == pytest.approx(2 * 2 * 3000 / 64, rel=0.05)
        assert found.rows_learned_per_s == pytest.approx(4 * rows, rel=0.05)
    if limit == "learner":
        assert found.rows_learned_per_s == pytest.approx(1000, rel=0.02)


def test_a_seed_gives_the_same_numbers():
    cluster = Cluster(num_actors=20, step_spread=0.5, row_s=1e-4)
    first, again, other = (simulate(cluster, seed, 5000) for seed in (3, 3, 4))
    assert first == again
    assert first.answer_s != other.answer_s
    games = SelfplayCluster(num_hosts=3)
    assert simulate_games(games, 3, 500) == simulate_games(games, 3, 500)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"num_actors": "0"}, "num_actors (0) must be 1 or more; correct it"),
        ({"row_s": "-1"}, "row_s (-1.0) must be 0 or more; correct it"),
        ({"row_s": "x"}, "row_s (x) must be a number; correct it"),
        (
            {"link_bytes_per_s": "0"},
            "link_bytes_per_s (0.0) must be above 0; correct it",
        ),
        (
            {"batch_items": "65"},
            "queue_items (64) must be 65 or more, what a step of all learners takes; "
            "raise it, or lower batch_items",
        ),
    ],
)
def test_what_cannot_be_is_refused(fields, line):
    with pytest.raises(UsageError) as refused:
        changed(Cluster(), fields)
    assert str(refused.value) == line


def test_every_check_has_a_row_whether_it_ran_or_not(monkeypatch, capsys):
    def figures(times, *settings):
        if settings == (100, 16.0):
            raise SystemExit("many_actors.py failed:\nno memory")
        return 11.0, 10.0

    checks = [
        dataclasses.replace(one, run=figures, refusal=lambda: "")
        for one in simulate_validate.CHECKS
    ]
    checks[-1] = dataclasses.replace(checks[-1], refusal=lambda: "needs tc")
    monkeypatch.setattr(simulate_validate, "CHECKS", checks)
    rows = list(simulate_validate.validate({}))
    assert [row["name"] for row in rows] == [one.name for one in checks]
    assert len({row["name"] for row in rows}) == 9
    not_run = {n: row["not_run"] for n, row in enumerate(rows) if "not_run" in row}
    assert not_run == {1: "many_actors.py failed: no memory", 8: "needs tc"}
    assert rows[0]["error"] == pytest.approx(0.1)
    for row in rows:
        simulate_validate.show_check(row)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 9
    assert shown[8].endswith("not run: needs tc")
    assert simulate_validate.summary(rows) == (
        "9 checks, 7 run, the largest error 10.0 %"
    )
    few = list(simulate_validate.validate({}, quick=True))
    assert len(few) == 9
    assert few[2]["not_run"] == "left out by --quick"


def test_nothing_is_checked_that_the_service_times_were_measured_on():
    scripts = {
        simulate_validate.actors_on_a_host: "many_actors.py",
        simulate_validate.inference_alone: "simulated_actors.py",
    }
    checked = [
        (scripts[one.run], one.settings[0])
        for one in simulate_validate.CHECKS
        if one.run in scripts
    ]
    assert len(checked) == 7
    assert not {*simulate_measure.CALIBRATED.items()} & {*checked}


def test_the_results_name_every_check():
    page = (BENCHMARKS / "results" / "scaling.md").read_text()
    _, _, rest = page.partition("## The model beside measurements")
    table = [line for line in rest.splitlines() if line.startswith("| ")]
    assert len(table) - 1 == len(simulate_validate.CHECKS)


def test_the_script_predicts_and_refuses():
    script = [sys.executable, BENCHMARKS / "cluster" / "simulate_cluster.py"]

    def call(*words):
        return subprocess.run([*script, *words], capture_output=True, text=True)

    done = call("--sizes", "1,300", "--json")
    assert done.returncode == 0, done.stderr
    one, many = json.loads(done.stdout)["rows"]
    assert one["steps_per_s"] < many["steps_per_s"]
    assert {one["limit"], many["limit"]} <= REMEDIES.keys()
    for words, line in (
        (["--sizes", "0"], "sizes (0) must be 1 to 100000; correct it"),
        (["--set", "row"], "set (row) must be FIELD=VALUE; correct it"),
        (["--net", "no"], "net (no) must be mlp or nature; correct it"),
    ):
        done = call(*words)
        assert done.returncode == 2
        assert done.stderr == f"simulate_cluster: {line}\n"
