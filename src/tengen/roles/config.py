"""The config of a whole run: what ``run.json`` holds and all roles read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tengen.agents import Agent
from tengen.bounds import bounded, check_fields
from tengen.config import check, check_range, from_dict, to_dict
from tengen.errors import UsageError, did_you_mean
from tengen.evaluation.match import MAX_SEED
from tengen.experience import ExperienceConfig
from tengen.inference import Choice, InferenceConfig
from tengen.learners import LearnerConfig
from tengen.nets import NetConfig
from tengen.observe import ObserveConfig
from tengen.overrides import override
from tengen.roles.launch_config import MOST_SERVERS, LaunchConfig
from tengen.roles.old_config import upgraded
from tengen.run import SCHEMA, RunDirectory

__all__ = [
    "RUN_LOCK",
    "RunConfig",
    "change_config",
    "config_changes",
    "newest_inference",
    "open_inference",
    "read_config",
    "record_inference",
    "stages_schema",
    "write_config",
]

# What a choice says of itself, as the config does.
_CHOSEN = ("devices", "backend", "precision", "batch_shape", "device_rows")

RUN_LOCK = "run.json"
"""The lock of whoever reads ``run.json``, changes it and writes it."""

_FIXED = (
    "task",
    "recipe",
    "seed",
    "net",
    "agent.kind",
    "store.kind",
    "store.sampler",
    "store.drawn_by",
    "store.validation_share",
    "learner.num_shards",
    "learner.optimizer.kind",
    "learner.optimizer.decays_scales",
)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that a run is made of; a recipe is a function that returns one."""

    task: str
    """A game or an environment, as ``tengen train TASK`` takes it."""
    recipe: str
    """Name of the recipe that this config started from."""
    agent: Agent
    """The algorithm, and its settings."""
    net: NetConfig
    """The network that the run starts with."""
    store: ExperienceConfig
    """What is kept of the experience, and how often it is used."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """How steps are made."""
    inference: InferenceConfig = field(default_factory=InferenceConfig)
    """Who evaluates, and how."""
    launch: LaunchConfig = field(default_factory=LaunchConfig)
    """What roles are given where all work at once."""
    observe: ObserveConfig = field(default_factory=ObserveConfig)
    """Who is given the numbers of the run as it trains."""
    seed: int = 0
    """Of every random number of the run, at least 0."""
    minutes: float = bounded(10.0, 0, above=True, rule="must be positive; raise it")
    """How long ``tengen train`` runs where no budget is given, positive."""

    def __post_init__(self) -> None:
        """Checks the ranges, and the parts against each other.

        Raises:
            UsageError: A field is out of its range, or a part is not for the agent.
        """
        check_range("seed", self.seed, 0, MAX_SEED, "leave it out")
        check_fields(self)
        self.agent.check(self)
        self._check_launch()

    @property
    def nets(self) -> tuple[NetConfig, ...]:
        """The first network, and that of each later stage."""
        return self.agent.nets(self.net)

    def _check_launch(self) -> None:
        schedule = self.agent.schedule(self)
        several = (schedule.acting, schedule.serving, "learn")
        # Learning is one process there, under the name of its first role.
        learning = schedule.learning[:1] if schedule.serving else schedule.learning
        roles = (schedule.acting, schedule.serving, *learning, schedule.rating)
        known = [role for role in roles if role]
        for role, given in self.launch.roles.items():
            if role not in known:
                raise UsageError(
                    f"launch.roles ({role}) is not a role of this run; "
                    f"{did_you_mean(role, known)}"
                )
            check(
                given.count == 1 or role in several,
                f"launch.roles.{role}.count",
                given.count,
                f"must be 1, as only {' and '.join(filter(None, several)) or 'acting'} "
                f"may have several processes; leave it out",
            )
            if role == schedule.serving:
                name = f"launch.roles.{role}.count"
                check_range(name, given.count, 1, MOST_SERVERS, "use one a device")
        num_learners = self.launch.of("learn").count
        check(
            num_learners <= self.learner.batch_size,
            "launch.roles.learn.count",
            num_learners,
            f"must be at most {self.learner.batch_size}, the learner.batch_size; "
            f"lower it",
        )


def write_config(
    run: RunDirectory, config: RunConfig, *, keeps_asked: bool = True
) -> None:
    """Publishes ``run.json``.

    Args:
        run: The run.
        config: Its config from now on.
        keeps_asked: Whether what was measured may be measured again for another
            network; not where somebody chose, be it the same.

    Raises:
        RunError: The disk refuses.
    """
    measured = {} if run.is_new else run.read_run().get("measured", {})
    if not keeps_asked and "inference" in measured:
        record = dict(measured["inference"])
        record.pop("asked", None)
        measured = {**measured, "inference": record}
    _write(run, config, measured, SCHEMA)


def stages_schema(content: Mapping[str, Any]) -> int:
    """Returns the schema of ``run.json`` whose stages a run has.

    Roles of a later version write the file too, and leave these as they are.

    Args:
        content: Of ``run.json``.
    """
    return int(content.get("stages_schema", content["schema"]))


def read_config(run: RunDirectory) -> RunConfig:
    """Returns the config in ``run.json``.

    Raises:
        UsageError: It is of a newer schema or has keys that this code does not know.
        RunError: It is damaged.
    """
    where = str(run.path / "run.json")
    return from_dict(RunConfig, upgraded(run.read_run()["config"], where), where)


def record_inference(
    run: RunDirectory, choice: Choice, asked: InferenceConfig, net: NetConfig
) -> RunConfig:
    """Writes what was chosen by measurement into ``run.json``, once for a network.

    Args:
        run: The run.
        choice: What was measured.
        asked: What it was chosen for, with what was left open; see ``open_inference``.
        net: The network.

    Returns:
        The config with it.

    Raises:
        RunError: The disk refuses.
    """
    with run.lock(RUN_LOCK, wait=True):
        content = run.read_run()
        config = dataclasses.replace(read_config(run), inference=choice.config)
        record = {**choice.record(), "asked": to_dict(asked), "net": to_dict(net)}
        measured = {**content.get("measured", {}), "inference": record}
        _write(run, config, measured, stages_schema(content))
    return config


def open_inference(run: RunDirectory, net: NetConfig) -> InferenceConfig | None:
    """Returns what was left open, where it is to be measured again for a network.

    None where the choice is this network's, where nothing was chosen, or where somebody
    has set another one since. A run of an earlier version does not say what it was
    chosen for, and keeps it.

    Raises:
        RunError: ``run.json`` is damaged.
    """
    record = run.read_run().get("measured", {}).get("inference", {})
    if "asked" not in record or record.get("net") == to_dict(net):
        return None
    inference = read_config(run).inference
    if any(record.get(name) != getattr(inference, name) for name in _CHOSEN):
        return None
    where = str(run.path / "run.json")
    return from_dict(InferenceConfig, record["asked"], where)


def newest_inference(run: RunDirectory, config: RunConfig) -> InferenceConfig:
    """Returns what a role evaluates with now: export chooses for each new network.

    Args:
        run: The run.
        config: As the role was made with, whose devices stay.

    Raises:
        RunError: ``run.json`` is damaged.
    """
    now = read_config(run).inference
    return dataclasses.replace(now, devices=config.inference.devices)


def change_config(config: RunConfig, settings: Sequence[str]) -> RunConfig:
    """Returns the config of a resumed run with ``--set`` settings applied.

    Raises:
        UsageError: A setting is unknown, out of range, or fixed since the run began.
    """
    changed = override(config, settings)
    before, after = to_dict(config), to_dict(changed)
    changes = [
        change
        for path in (*_FIXED, *(f"agent.{name}" for name in config.agent.fixed))
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


def _write(
    run: RunDirectory, config: RunConfig, measured: dict[str, Any], stages: int
) -> None:
    # Whoever only looks at a run knows its roles from here, and imports no agent.
    run.write_run(
        {
            "config": to_dict(config),
            "measured": measured,
            "stages_schema": stages,
            "roles": list(config.agent.schedule(config).needed),
        }
    )


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
