"""A resumed learner reports the same numbers as an uninterrupted one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tengen.agents import NetStage
from tengen.experience import StepTable
from tengen.experience.rows.shuffled_files import read_turn
from tengen.learners.checkpoint import read_model
from tengen.nets import ResNetConfig, parse_net
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, RunConfig, make_role, write_config
from tengen.roles.experience import open_experience
from tengen.roles.role import Role
from tengen.roles.spent import read_spent
from tengen.run import RunDirectory
from tests.unit.experience.store_games import write_generation

NUM_TURNS = 3
# Report fields with measured times, which differ between runs.
CLOCKS = ("seconds", "idle_s", "sample_wait_s", "train_s")


def make_run(path: Path, config: RunConfig) -> RunDirectory:
    run = RunDirectory.create_or_resume(path)
    write_config(run, config)
    return run


def counts(report: Mapping[str, Any] | None) -> dict[str, Any]:
    assert report is not None
    return {name: value for name, value in report.items() if name not in CLOCKS}


def assert_same_checkpoint(first: Path, second: Path) -> None:
    newest = [
        run.checkpoints.entry(run.checkpoints.latest() or 0)
        for run in (RunDirectory.open(first), RunDirectory.open(second))
    ]
    data = [(path / "state.safetensors").read_bytes() for path in newest]
    assert data[0] == data[1]


def staged(config: RunConfig, *stages: NetStage) -> RunConfig:
    agent = dataclasses.replace(config.agent, stages=stages)
    return dataclasses.replace(config, agent=agent)


def spend(context: RoleContext, share: float | None) -> None:
    """Sets the share of its budget that a run has spent; None means no budget."""
    in_all = None if share is None else 10.0
    context.core_minutes_in_all = in_all
    context.core_minutes = None if share is None else 10.0 * share


class Games:
    """A run of games whose network grows.

    Each turn adds a generation of random games and spends a quarter of the budget.
    """

    def __init__(self, path: Path) -> None:
        settings = (
            "store.min_rows=50",
            "store.limiter.samples_per_row=4",
            "learner.batch_size=8",
            "learner.num_shards=1",
            "learner.precision=float32",
            "learner.optimizer.num_warmup_steps=20",
        )
        config = override(make_config("tictactoe", "alphazero", None), settings)
        self.config = staged(
            dataclasses.replace(config, net=parse_net("2x8")),
            NetStage(share=0.5, net=parse_net("3x12")),
        )
        self.run = make_run(path, self.config)

    def learner(self, context: RoleContext) -> Role:
        return make_role("learn", self.config, self.run, context)

    def arrive(self, turn: int, context: RoleContext) -> None:
        write_generation(self.run.experience, turn, 24)
        spend(context, turn / 4)


class Shuffled(Games):
    """A run of games whose batches a role shuffle samples, recreated each turn."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.config = override(self.config, ("store.drawn_by=shuffle",))
        write_config(self.run, self.config)

    def arrive(self, turn: int, context: RoleContext) -> None:
        super().arrive(turn, context)
        role = make_role("shuffle", self.config, self.run, RoleContext(num_threads=2))
        drawn = counts(role.turn())
        assert drawn["generation"] == turn
        # Shuffle waits because the learner has not started on the last shuffle turn.
        assert role.turn() is None
        role.close()


class Unrolls:
    """A run of an environment; each turn inserts random unrolls.

    The unrolls fill complete batches, because a queue exists only in memory and loses a
    remainder with the learner's process.
    """

    agent = "vtrace"
    settings = ("store.max_items=2000",)
    num_blocks = 60 * 16

    def __init__(self, path: Path) -> None:
        pytest.importorskip("gymnasium")
        config = make_config("CartPole-v1", self.agent, None)
        self.config = override(config, self.settings)
        self.run = make_run(path, self.config)
        self._writers: dict[StepTable, Any] = {}

    def learner(self, context: RoleContext) -> Role:
        return make_role("learn", self.config, self.run, context)

    def arrive(self, turn: int, context: RoleContext) -> None:
        steps = open_experience(self.config, self.run, context)
        assert isinstance(steps, StepTable)
        if steps not in self._writers:
            self._writers[steps] = steps.writer("actor-0", 1)
        rng = np.random.default_rng(turn)
        num_steps = steps.layout.num_steps
        for _ in range(self.num_blocks):
            columns = {
                name: rng.integers(0, 2, (1, num_steps, *column.shape)).astype(
                    column.dtype
                )
                for name, column in steps.stored.items()
            }
            self._writers[steps].append(columns, {})
        steps.flush()


class Replay(Unrolls):
    """A run of an environment with a replay, whose steps are sampled many times."""

    agent = "dqn"
    settings = (
        "store.min_items=100",
        "store.sampler=uniform",
        "store.samples_per_item=64",
    )
    num_blocks = 150


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("family", [Games, Shuffled, Unrolls])
def test_reports_do_not_tell_whether_the_learner_was_made_anew(
    family: Any, tmp_path: Path
) -> None:
    whole, parted = family(tmp_path / "whole"), family(tmp_path / "parted")
    context = RoleContext()
    role = whole.learner(context)
    assert counts(role.turn()) == {"num_steps": 0, "checkpoint": 0}
    expected = []
    for turn in range(1, NUM_TURNS + 1):
        whole.arrive(turn, context)
        expected.append(counts(role.turn()))
    role.close()
    assert [report["generation"] for report in expected] == [1, 2, 3]
    grown_at = [[], [], []] if family is Unrolls else [[], [2], [2]]
    assert [report["grown_at"] for report in expected] == grown_at
    assert all(report["num_new"] > 0 for report in expected)

    role = parted.learner(RoleContext())
    role.turn()
    role.close()
    for turn in range(1, NUM_TURNS + 1):
        context = RoleContext()
        role = parted.learner(context)
        parted.arrive(turn, context)
        assert counts(role.turn()) == expected[turn - 1]
        role.close()
    assert_same_checkpoint(tmp_path / "whole", tmp_path / "parted")


@pytest.mark.parametrize("family", [Games, Shuffled, Replay])
def test_a_turn_in_two_parts_counts_as_one(family: Any, tmp_path: Path) -> None:
    whole, parted = family(tmp_path / "whole"), family(tmp_path / "parted")
    reports = {}
    for name, run, stops in (("whole", whole, False), ("parted", parted, True)):
        context = RoleContext()
        role = run.learner(context)
        role.turn()
        run.arrive(1, context)
        if stops:
            context.progress = lambda report, stop=context.stop: stop.set()
        reports[name] = [counts(role.turn())]
        role.close()
    assert reports["parted"][0]["stopped"]
    role = parted.learner(RoleContext())
    reports["parted"].append(counts(role.turn()))
    role.close()

    (expected,), (first, second) = reports["whole"], reports["parted"]
    # The learner finishes what is in progress before it stops: two steps, or two groups
    # of the 16 steps whose batches are sampled together.
    num_before = 32 if family is Replay else 2
    assert first["num_steps"] == num_before < expected["num_steps"]
    assert first["num_steps"] + second["num_steps"] == expected["num_steps"]
    assert (first["num_new"], second["num_new"]) == (expected["num_new"], 0)
    for name in ("total_steps", "generation", "table", "stopped"):
        assert second[name] == expected[name], name
    # The random numbers of a replay restart with its process.
    if family is not Replay:
        assert_same_checkpoint(tmp_path / "whole", tmp_path / "parted")


def test_a_learner_of_shuffled_rows_is_one_that_draws(tmp_path: Path) -> None:
    """Also checks that shuffle turns are deleted when no checkpoint needs them."""
    learned = {}
    for family in (Games, Shuffled):
        run = family(tmp_path / family.__name__)
        context = RoleContext()
        role = run.learner(context)
        role.turn()
        learned[family] = []
        for turn in range(1, NUM_TURNS + 3):
            run.arrive(turn, context)
            learned[family].append(counts(role.turn()))
        role.close()
    assert learned[Games] == learned[Shuffled]
    assert_same_checkpoint(tmp_path / "Games", tmp_path / "Shuffled")
    # At the last shuffle, checkpoints 2 to 4 existed, which need turns 1 to 3.
    assert RunDirectory.open(tmp_path / "Shuffled").shuffled.numbers() == [1, 2, 3, 4]


def test_shuffle_goes_on_where_a_turn_is_less_than_a_batch(tmp_path: Path) -> None:
    run, context = Shuffled(tmp_path / "run"), RoleContext()
    learner = run.learner(context)
    learner.turn()
    run.arrive(1, context)
    drawn = sum(read_turn(run.run.shuffled, 0).shard_rows)
    batch = f"learner.batch_size={drawn + 8}"
    larger = override(run.config, (batch, "learner.num_shards=1"))
    learner.close()
    learner = make_role("learn", larger, run.run, context)
    shuffle = make_role("shuffle", larger, run.run, RoleContext())
    steps = 0
    for generation in range(2, 12):
        write_generation(run.run.experience, generation, 24)
        shuffle.turn()
        steps += (learner.turn() or {}).get("num_steps", 0)
    assert steps > 0
    for role in (learner, shuffle):
        role.close()


def test_shuffle_waits_for_the_learner(tmp_path: Path) -> None:
    run, context = Shuffled(tmp_path / "run"), RoleContext()
    learner = run.learner(context)
    learner.turn()
    run.arrive(1, context)
    write_generation(run.run.experience, 2, 24)
    shuffle = make_role("shuffle", run.config, run.run, RoleContext())
    assert shuffle.turn() is None
    assert run.run.shuffled.numbers() == [0]
    learner.turn()
    assert counts(shuffle.turn())["turn"] == 1
    for role in (learner, shuffle):
        role.close()


def test_a_shuffle_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """The stopped turn does not count its samples."""
    drawn = []
    for is_stopped in (False, True):
        run, context = Shuffled(tmp_path / str(is_stopped)), RoleContext()
        learner = run.learner(context)
        learner.turn()
        learner.close()
        write_generation(run.run.experience, 1, 24)
        shuffle = make_role("shuffle", run.config, run.run, context)
        if is_stopped:
            context.stop.set()
            assert shuffle.turn() == {"stopped": True}
            assert run.run.shuffled.numbers() == []
            context.stop.clear()
        report = shuffle.turn()
        assert report is not None
        drawn.append((report["turn"], report["num_samples"], report["num_new"]))
        shuffle.close()
    assert drawn[0] == drawn[1]


def test_a_grown_network_warms_up_again_and_its_steps_go_on(tmp_path: Path) -> None:
    run, context = Games(tmp_path / "run"), RoleContext()
    role = run.learner(context)
    role.turn()
    reports = []
    for turn in range(1, NUM_TURNS + 1):
        run.arrive(turn, context)
        reports.append(counts(role.turn()))
    role.close()
    steps = [report["num_steps"] for report in reports]
    assert min(steps) > 20  # longer than a warm-up
    assert [report["total_steps"] for report in reports] == [
        sum(steps[:1]),
        sum(steps[:2]),
        sum(steps),
    ]
    peak = run.config.learner.optimizer.learning_rate
    rates = [report["learning_rate"] for report in reports]
    # The 20 warm-up steps lack 19/20, 18/20 ... 0 of the rate; turn 2 warms up again.
    for num_steps, rate in zip(steps[:2], rates[:2], strict=True):
        assert rate == pytest.approx(peak * (1 - 9.5 / num_steps))
    assert rates[2] == pytest.approx(peak)


def num_channels(run: Games) -> int:
    number = run.run.checkpoints.latest()
    assert number is not None
    net = read_model(run.run.checkpoints.entry(number)).net
    assert isinstance(net, ResNetConfig)
    return net.num_channels


def test_a_further_budget_neither_shrinks_nor_grows_again(tmp_path: Path) -> None:
    run = Games(tmp_path / "run")
    grown = []
    # The budget is almost spent; then the next call's budget passes the same share.
    for turn, spent in enumerate((0.0, 0.9, 0.0, 0.6)):
        context = RoleContext()
        role = run.learner(context)
        run.arrive(turn + 1, context)
        spend(context, spent)
        # The first turn only publishes checkpoint 0.
        reports = [role.turn(), role.turn()]
        role.close()
        grown.append((counts(reports[turn == 0])["grown_at"], num_channels(run)))
    assert grown == [([], 8), ([2], 12), ([2], 12), ([2], 12)]


def test_a_learner_alone_has_no_budget_and_keeps_its_network(tmp_path: Path) -> None:
    run = Games(tmp_path / "run")
    for turn, spent in enumerate((0.0, None, 0.9, None)):
        context = RoleContext()
        role = run.learner(context)
        run.arrive(turn + 1, context)
        spend(context, spent)
        reports = [role.turn(), role.turn()]
        role.close()
        grown_at = counts(reports[turn == 0])["grown_at"]
        assert (grown_at, num_channels(run)) == (([], 8) if turn < 2 else ([3], 12))


def test_what_a_run_was_given_is_in_its_checkpoints(tmp_path: Path) -> None:
    run = Games(tmp_path / "run")
    for turn, minutes in enumerate((3.0, 5.5, None, 8.0)):
        context = RoleContext(core_minutes=minutes)
        role = run.learner(context)
        role.turn()
        write_generation(run.run.experience, turn + 1, 24)
        role.turn()
        role.close()
        # A standalone role does not know its core-minutes, and keeps the stored value.
        expected = 5.5 if minutes is None else minutes
        assert read_spent(run.run).core_minutes == expected


def test_a_stage_by_games_begins_without_a_budget(tmp_path: Path) -> None:
    run, context = Games(tmp_path / "run"), RoleContext()
    run.config = staged(run.config, NetStage(games=40, net=parse_net("3x12")))
    role = run.learner(context)
    role.turn()
    widths = []
    for turn in (1, 2, 3):
        write_generation(run.run.experience, turn, 24)
        role.turn()
        widths.append(num_channels(run))
    role.close()
    assert widths == [8, 12, 12]


def test_stages_that_begin_in_one_turn_are_one_growth(tmp_path: Path) -> None:
    run, context = Games(tmp_path / "run"), RoleContext()
    stages = [
        NetStage(share=0.1 * n, net=parse_net(f"3x{8 + 4 * n}")) for n in (1, 2, 3)
    ]
    run.config = staged(run.config, *stages)
    role = run.learner(context)
    role.turn()
    run.arrive(1, context)
    spend(context, 0.25)
    assert counts(role.turn())["grown_at"] == [1, 1]
    role.close()
    assert num_channels(run) == 16
