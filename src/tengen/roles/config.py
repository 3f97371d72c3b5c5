"""The config of a whole run: what ``run.json`` holds and all roles read."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tengen.actors import ActorConfig, EnvironmentActorConfig, SelfplayConfig
from tengen.config import check, check_range, from_dict, override, to_dict
from tengen.errors import UsageError
from tengen.evaluation import AcceptAllGate, GateConfig, LadderConfig, PlayedGate
from tengen.evaluation.match import MAX_SEED
from tengen.games import Game, GoVariety, variants_of
from tengen.inference import Choice, InferenceConfig
from tengen.learners import AlphaZeroConfig, LearnerConfig, LossConfig
from tengen.nets import NetConfig, ResNetConfig, game_features
from tengen.run import RunDirectory
from tengen.store import QueueConfig, WindowConfig

__all__ = [
    "RUN_LOCK",
    "NetStage",
    "RunConfig",
    "change_config",
    "config_changes",
    "read_config",
    "record_inference",
    "write_config",
]

RUN_LOCK = "run.json"
"""The lock of whoever reads ``run.json``, changes it and writes it."""

_FIXED = (
    "task",
    "agent",
    "recipe",
    "seed",
    "net",
    "stages",
    "actor.kind",
    "learn_from",
)
_FIXED_KINDS = (
    "store.kind",
    "store.drawn_by",
    "store.validation_share",
    "loss.kind",
    "learner.num_shards",
    "learner.optimizer.kind",
)


@dataclass(frozen=True, kw_only=True)
class NetStage:
    """A larger network from some point of a budget on; it starts from the smaller one.

    It takes over at the first turn of learning after that point. The checkpoint keeps
    that it did, so that a run which goes on, with whatever budget, neither shrinks nor
    grows by it again. A role that runs alone has no budget, and no stage begins.
    """

    share: float
    """Of the budget that is spent before, in (0, 1): of the call's minutes, or of the
    games that ``tengen train`` will have played in the run when the call ends."""
    net: ResNetConfig
    """The network, no smaller than the one before it. It says blocks and channels of
    the trunk; the rest is as in the first network, whatever stands here."""

    def __post_init__(self) -> None:
        """Checks the range.

        Raises:
            UsageError: The share is out of range.
        """
        check(
            0 < self.share < 1,
            "share",
            self.share,
            "must be above 0 and below 1; the first network is net",
        )


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that a run is made of; a recipe is a function that returns one."""

    task: str
    """A game or an environment, as ``tengen train TASK`` takes it."""
    agent: str
    """``alphazero`` or ``vtrace``."""
    recipe: str
    """Name of the recipe that this config started from."""
    seed: int = 0
    """Of every random number of the run, at least 0."""
    minutes: float = 10.0
    """How long ``tengen train`` runs where no budget is given, positive."""
    net: NetConfig = field(default_factory=ResNetConfig)
    """The network that the run starts with."""
    stages: tuple[NetStage, ...] = ()
    """Larger networks later, in increasing order of their shares of the budget."""
    actor: ActorConfig = field(default_factory=SelfplayConfig)
    """How experience is made."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """How steps are made."""
    loss: LossConfig = field(default_factory=AlphaZeroConfig)
    """What is minimised."""
    store: WindowConfig | QueueConfig = field(default_factory=WindowConfig)
    """The table between actors and learner."""
    learn_from: str = ""
    """RUN whose games this one learns from while they are played, with its own network
    and no self-play: several networks learn from one run's games so. Empty for its own
    games."""
    inference: InferenceConfig = field(default_factory=InferenceConfig)
    """Who evaluates, and how."""
    gate: GateConfig = field(default_factory=AcceptAllGate)
    """Which candidates become models."""
    rating: LadderConfig = field(default_factory=LadderConfig)
    """How models are rated on the way."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_range("seed", self.seed, 0, MAX_SEED, "leave it out")
        check(self.minutes > 0, "minutes", self.minutes, "must be positive; raise it")
        self._check_family()
        self._check_lead()
        check(
            not self.learn_from or self.actor.kind == "selfplay",
            "learn_from",
            self.learn_from,
            "must be empty where environments are played; leave it out",
        )
        if isinstance(self.store, QueueConfig):
            self._check_queue(self.store)
        else:
            self._check_window(self.store)
        shares = [stage.share for stage in self.stages]
        check(
            shares == sorted(set(shares)),
            "stages",
            shares,
            "must begin at increasing shares; sort them",
        )
        self._check_growth()

    def _check_growth(self) -> None:
        """Networks only grow."""
        for index, (before, after) in enumerate(itertools.pairwise(self.nets)):
            if isinstance(before, ResNetConfig) and isinstance(after, ResNetConfig):
                for name in ("num_blocks", "num_channels"):
                    least, size = getattr(before, name), getattr(after, name)
                    rule = f"must not shrink from {least}; raise it, or set stages=[]"
                    check(size >= least, f"stages[{index}].net.{name}", size, rule)

    def _check_family(self) -> None:
        """Games and environments differ in their parts; a mixture cannot work."""
        kinds = {
            "selfplay": {"loss": "alphazero", "net": "resnet", "store": "window"},
            "environment": {"loss": "vtrace", "net": "mlp", "store": "fifo"},
        }[self.actor.kind]
        for name, kind in kinds.items():
            found = getattr(self, name).kind
            check(
                found == kind,
                f"{name}.kind",
                found,
                f"must be {kind} with actor.kind {self.actor.kind}; leave it out",
            )
        check(
            self.actor.kind == "selfplay" or isinstance(self.gate, AcceptAllGate),
            "gate.kind",
            self.gate.kind,
            f"must be accept_all with actor.kind {self.actor.kind}; leave it out",
        )
        check(
            self.net.kind == "resnet" or self.inference.precision != "int8",
            "inference.precision",
            self.inference.precision,
            f"needs convolutions, which net.kind {self.net.kind} has not; use fp32",
        )

    def _check_lead(self) -> None:
        """Leads are estimated for a network that learns them."""
        if not isinstance(self.actor, SelfplayConfig) or self.actor.lead_share == 0:
            return
        check(
            isinstance(self.net, ResNetConfig) and self.net.lead,
            "actor.lead_share",
            self.actor.lead_share,
            "needs a network that learns the lead; set net.auxiliary and net.lead",
        )

    def _check_window(self, store: WindowConfig) -> None:
        most = store.limiter.max_samples
        check(
            self.learner.batch_size <= most,
            "learner.batch_size",
            self.learner.batch_size,
            f"must be at most store.limiter.max_samples, {most:g}; lower it",
        )
        check(
            store.with_replacement or self.learner.batch_size <= store.min_rows,
            "learner.batch_size",
            self.learner.batch_size,
            f"must be at most store.min_rows, {store.min_rows}, where rows are drawn "
            f"without replacement; lower it",
        )

    def _check_queue(self, store: QueueConfig) -> None:
        """Actor and learner take turns in one thread: a full queue would block both."""
        if not isinstance(self.actor, EnvironmentActorConfig):
            return
        needed = self.actor.num_unrolls + self.learner.batch_size - 1
        check(
            store.capacity_items >= needed,
            "store.capacity_items",
            store.capacity_items,
            f"must be at least {needed}, a turn's unrolls and what a batch leaves; "
            f"raise it",
        )

    def check_game(self, game: Game) -> None:
        """Checks what depends on the game that is trained.

        Raises:
            UsageError: A match would begin with more random plies than a game has, a
                network would not know smaller boards or the score that counts, or a
                lead has no komi.
        """
        if isinstance(self.actor, SelfplayConfig):
            self.check_boards(game, self.actor.variety)
        self._check_scores(game)
        if isinstance(self.actor, SelfplayConfig) and game.max_score == 0:
            check(
                self.actor.lead_share == 0,
                "actor.lead_share",
                self.actor.lead_share,
                f"must be 0 in {game.name}, which has no komi; leave it out",
            )
        openings = {"rating": self.rating.opening_plies}
        if isinstance(self.gate, PlayedGate):
            openings["gate"] = self.gate.opening_plies
        for name, plies in openings.items():
            check_range(f"{name}.opening_plies", plies, 0, game.max_plies - 1)

    def check_boards(self, game: Game, variety: GoVariety) -> None:
        """Checks that the network leaves out what is beyond smaller boards.

        Args:
            game: The task's.
            variety: Of the games that it learns from.

        Raises:
            UsageError: It does not, and there are smaller boards.
        """
        variants = variants_of(self.task, variety)
        beyond = [
            name
            for name, _ in variants
            if name and not game.new_state(name).observation()[0].all()
        ]
        if beyond:
            check(
                isinstance(self.net, ResNetConfig) and self.net.mixed_sizes,
                "net.mixed_sizes",
                False,
                f"must be true where games are played on smaller boards ({beyond[0]}); "
                "set it",
            )

    def _check_scores(self, game: Game) -> None:
        if not isinstance(self.actor, SelfplayConfig):
            return
        features = game_features(game)
        self.actor.search.check_scores(
            all(
                isinstance(net, ResNetConfig) and net.estimates_score(features)
                for net in self.nets
            )
        )

    @property
    def nets(self) -> tuple[NetConfig, ...]:
        """The first network and that of each stage."""
        if not isinstance(self.net, ResNetConfig):
            return (self.net, *(stage.net for stage in self.stages))
        grown = (
            dataclasses.replace(
                self.net,
                num_blocks=stage.net.num_blocks,
                num_channels=stage.net.num_channels,
            )
            for stage in self.stages
        )
        return (self.net, *grown)

    def num_stages_begun(self, spent: float) -> int:
        """Returns how many stages begin within a share of the budget."""
        return sum(stage.share <= spent for stage in self.stages)


def write_config(run: RunDirectory, config: RunConfig) -> None:
    """Publishes ``run.json``.

    Raises:
        RunError: The disk refuses.
    """
    measured = {} if run.is_new else run.read_run().get("measured", {})
    run.write_run({"config": to_dict(config), "measured": measured})


def read_config(run: RunDirectory) -> RunConfig:
    """Returns the config in ``run.json``.

    Raises:
        UsageError: It is of a newer schema or has keys that this code does not know.
        RunError: It is damaged.
    """
    where = str(run.path / "run.json")
    return from_dict(RunConfig, run.read_run()["config"], where)


def record_inference(run: RunDirectory, choice: Choice) -> RunConfig:
    """Writes what was chosen by measurement into ``run.json``, once for the run.

    Returns:
        The config with it.

    Raises:
        RunError: The disk refuses.
    """
    with run.lock(RUN_LOCK, wait=True):
        content = run.read_run()
        config = dataclasses.replace(read_config(run), inference=choice.config)
        measured = {**content.get("measured", {}), "inference": choice.record()}
        run.write_run({"config": to_dict(config), "measured": measured})
    return config


def change_config(config: RunConfig, settings: Sequence[str]) -> RunConfig:
    """Returns the config of a resumed run with ``--set`` settings applied.

    Raises:
        UsageError: A setting is unknown, out of range, or fixed since the run began.
    """
    changed = override(config, settings)
    before, after = to_dict(config), to_dict(changed)
    changes = [
        change
        for path in (*_FIXED, *_FIXED_KINDS)
        for change in _differences(path, _lookup(before, path), _lookup(after, path))
    ]
    if changes:
        names = ", ".join(f"{path} ({new})" for path, _, new in changes)
        verb = "is" if len(changes) == 1 else "are"
        values = ", ".join(str(old) for _, old, _ in changes)
        raise UsageError(
            f"{names} {verb} fixed since the run began, as {values}; "
            f"leave it out or choose another --out"
        )
    return changed


def config_changes(before: RunConfig, after: RunConfig) -> list[str]:
    """Returns what differs, a field each, as ``store.min_rows 8000 -> 1000``."""
    old, new = to_dict(before), to_dict(after)
    return [
        f"{path} {_shown(was)} -> {_shown(now)}"
        for name in old
        for path, was, now in _differences(name, old[name], new[name])
    ]


def _shown(value: Any) -> str:
    return '""' if value == "" else str(value)


def _differences(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields (path, old, new) of every field below ``path`` that is not the same."""
    if isinstance(old, dict) and isinstance(new, dict):
        # Of two kinds, the kind is what differs.
        for name in sorted(old.keys() & new.keys()):
            yield from _differences(f"{path}.{name}", old[name], new[name])
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"number of {path}", len(old), len(new)
        for index, pair in enumerate(zip(old, new, strict=False)):
            yield from _differences(f"{path}[{index}]", *pair)
    elif old != new:
        yield path, old, new


def _lookup(data: dict[str, Any], path: str) -> Any:
    value: Any = data
    for name in path.split("."):
        value = value.get(name)  # a table of another kind has other fields
    return value
