"""Reads and writes ``run.json``, which has a run's config and measured settings.

A recipe sets the number of games per generation. If a call with a budget in time
finds the machine too slow for that number, self-play reduces it
(``roles.selfplay.fitting``). Then ``config`` has the reduced size, and
``measured.generation`` has the recipe's size (``asked``). Each call starts from the
recipe's size again, unless the user set the size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from tengen.agents.alphazero import AlphaZero
from tengen.config import from_dict, to_dict
from tengen.errors import UsageError
from tengen.inference import Choice, InferenceConfig
from tengen.nets import NetConfig
from tengen.overrides import override
from tengen.roles.config.run_config import RunConfig
from tengen.roles.spent import learned_steps
from tengen.run import SCHEMA, RunDirectory

Part = TypeVar("Part")

# Inference settings that the role export chooses by measurement.
_CHOSEN = ("devices", "backend", "precision", "batch_shape", "device_rows")

# Agent settings that earlier versions stored at the top level of the config.
_OF_SELFPLAY = ("stages", "learn_from", "gate", "rating")

RUN_LOCK = "run.json"
"""Name of the lock that protects read-modify-write changes of ``run.json``."""

# Config fields that cannot change after a run has begun; an agent may add more fields.
_FIXED = (
    "task",
    "recipe",
    "seed",
    "net",
    "agent.kind",
    "store.kind",
    "store.sampler",
    "store.demos",
    "store.drawn_by",
    "store.validation_share",
    "learner.num_shards",
    "learner.optimizer.kind",
    "learner.optimizer.decays_scales",
)


def write_config(
    run: RunDirectory,
    config: RunConfig,
    *,
    keeps_asked: bool = True,
    generation: Mapping[str, Any] | None = None,
) -> None:
    """Publishes ``run.json`` with a new config.

    Args:
        run: The run.
        config: The run's new config.
        keeps_asked: Whether the inference settings may be measured again for a
            different network; False if the user set them, even to the same values.
        generation: The generation record from ``asked_generations``.

    Raises:
        RunError: Writing failed.
    """
    measured = {} if run.is_new else run.read_run().get("measured", {})
    if not keeps_asked and "inference" in measured:
        record = dict(measured["inference"])
        record.pop("asked", None)
        measured = {**measured, "inference": record}
    measured = {name: one for name, one in measured.items() if name != "generation"}
    if generation is not None:
        measured = {**measured, "generation": dict(generation)}
    _write(run, config, measured, SCHEMA)


def stages_schema(content: Mapping[str, Any]) -> int:
    """Returns the schema version of ``run.json`` in which a run's stages were written.

    Roles of a later version may rewrite the file, but do not change the stages.

    Args:
        content: The content of ``run.json``.
    """
    return int(content.get("stages_schema", content["schema"]))


def read_config(run: RunDirectory) -> RunConfig:
    """Returns the config in ``run.json``.

    Raises:
        UsageError: The file has a newer schema, or unknown keys.
        RunError: The file is damaged.
    """
    where = str(run.path / "run.json")
    return from_dict(RunConfig, _upgraded(run.read_run()["config"], where), where)


def read_part(run: RunDirectory, name: str, kind: type[Part]) -> Part:
    """Returns one part of the config in ``run.json``, without checking the other parts.

    Args:
        run: The run.
        name: The part's field in ``RunConfig``.
        kind: The part's class.

    Raises:
        UsageError: The file has a newer schema, or the part has unknown keys.
        RunError: The file is damaged.
    """
    where = str(run.path / "run.json")
    config = _upgraded(run.read_run()["config"], where)
    return from_dict(kind, config.get(name, {}), where)


def record_inference(
    run: RunDirectory, choice: Choice, asked: InferenceConfig, net: NetConfig
) -> RunConfig:
    """Writes measured inference settings into ``run.json``, once per network.

    Args:
        run: The run.
        choice: The measurements and the chosen settings.
        asked: The settings before the choice, in which open values are ``auto``; see
            ``open_inference``.
        net: The network.

    Returns:
        The config with the chosen settings.

    Raises:
        RunError: Writing failed.
    """
    with run.lock(RUN_LOCK, wait=True):
        config = dataclasses.replace(read_config(run), inference=choice.config)
        record = {**choice.record(), "asked": to_dict(asked), "net": to_dict(net)}
        _record_measured(run, config, "inference", record)
    return config


def open_inference(run: RunDirectory, net: NetConfig) -> InferenceConfig | None:
    """Returns the inference settings to measure again for ``net``, or None.

    Values to be measured are ``auto``. Returns None if the settings were chosen for
    ``net``, if nothing was chosen, or if the user has changed a setting since then. In
    a run of an earlier version, which records no network, the choice stays.

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
    """Returns the inference settings in ``run.json``, which export may change.

    Args:
        run: The run.
        config: The config that the role was started with, whose devices are used.

    Raises:
        RunError: ``run.json`` is damaged.
    """
    now = read_part(run, "inference", InferenceConfig)
    return dataclasses.replace(now, devices=config.inference.devices)


def _record_measured(
    run: RunDirectory, config: RunConfig, topic: str, record: Mapping[str, Any]
) -> None:
    """Publishes a config with measured settings, and the record of the measurement."""
    content = run.read_run()
    measured = {**content.get("measured", {}), topic: record}
    _write(run, config, measured, stages_schema(content))


def _write(
    run: RunDirectory, config: RunConfig, measured: dict[str, Any], stages: int
) -> None:
    # Store the roles, so that a program that only reads a run needs no agent code.
    run.write_run(
        {
            "config": to_dict(config),
            "measured": measured,
            "stages_schema": stages,
            "roles": list(config.schedule.needed),
        }
    )


def _upgraded(config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Converts the config of a ``run.json`` to the current format.

    In the earlier format, ``agent`` was only a name, and the agent's settings were
    fields of the config itself.

    Args:
        config: The config in the file.
        where: Path of the file, for error messages.

    Raises:
        UsageError: The agent's experience format has changed.
    """
    name = config.get("agent")
    if not isinstance(name, str):
        return config
    actor = config.get("actor")
    if isinstance(actor, Mapping) and actor.get("kind", "selfplay") != "selfplay":
        raise UsageError(
            f"agent ({name}) of {where} is from an earlier version, whose experience "
            "this version cannot read; choose another --out"
        )
    moved = (*_OF_SELFPLAY, "actor", "loss")
    agent = {key: _without_kind(key, config[key]) for key in moved if key in config}
    rest = {key: value for key, value in config.items() if key not in moved}
    return {**rest, "agent": {"kind": name, **agent}}


def _without_kind(key: str, value: Any) -> Any:
    if key not in ("actor", "loss") or not isinstance(value, Mapping):
        return value
    return {name: item for name, item in value.items() if name != "kind"}


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
        values = ", ".join(str(old) or "empty" for _, old, _ in changes)
        raise UsageError(
            f"{names} {verb} fixed for this run, at {values}; leave it out, or choose "
            "another --out"
        )
    return changed


def config_changes(before: RunConfig, after: RunConfig) -> list[str]:
    """Returns a line per changed field, such as ``store.min_rows 8000 -> 1000``."""
    old, new = to_dict(before), to_dict(after)
    return [
        f"{path} {_shown(was)} -> {_shown(now)}"
        for name in old
        for path, was, now in _differences(name, old[name], new[name])
    ]


def _shown(value: Any) -> str:
    return '""' if value == "" else str(value)


def _differences(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields (path, old, new) for every field under ``path`` whose values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        # Compare only common fields, because the two configs may be of different kinds.
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
        value = value.get(name)  # None if the config lacks the field
    return value


def asked_generations(
    run: RunDirectory, config: RunConfig, *, is_set: bool
) -> dict[str, Any] | None:
    """Returns the record of the recipe's generation size; None if the size is fixed.

    Args:
        run: The run, which may be new.
        config: The run's config in this call, from ``with_asked_generations``.
        is_set: Whether the user sets the generation size in this call.

    Raises:
        RunError: ``run.json`` is damaged.
    """
    asked = {} if config.games is None else config.games.generation_sizes()
    if is_set or not asked or config.store.games_of_model:
        return None
    if not run.is_new and _record(run).get("asked") != asked:
        return None
    return {"asked": asked}


def with_asked_generations(run: RunDirectory, config: RunConfig) -> RunConfig:
    """Returns ``config`` with the recipe's generation size instead of a reduced size.

    Raises:
        RunError: ``run.json`` is damaged.
    """
    agent = config.games
    if agent is None:
        return config
    record, sizes = _record(run), agent.generation_sizes()
    fitted = {name: record.get("fitted", {}).get(name) for name in sizes}
    if not sizes or fitted != sizes:
        return config
    agent = agent.with_generation_sizes(record["asked"])
    return dataclasses.replace(config, agent=agent)


def record_generation(run: RunDirectory, fitted: Mapping[str, Any]) -> bool:
    """Writes the generation size that suits this machine's speed into ``run.json``.

    If the run has no learner steps yet, learning then starts as soon as the rows of the
    first generation are available.

    Args:
        run: The run.
        fitted: The field ``fitted`` of self-play's report.

    Returns:
        Whether the number of rows at which learning starts has changed.

    Raises:
        RunError: ``run.json`` is damaged, or writing failed.
    """
    with run.lock(RUN_LOCK, wait=True):
        config = read_config(run)
        store = config.store
        if learned_steps(run) == 0:
            num_rows = max(config.learner.batch_size, fitted["num_rows"])
            store = store.starting_with(num_rows)
        is_changed = store != config.store
        agent = AlphaZero.of(config.agent, "selfplay").with_generation_sizes(fitted)
        config = dataclasses.replace(config, store=store, agent=agent)
        record = {**_record(run), "fitted": dict(fitted)}
        _record_measured(run, config, "generation", record)
    return is_changed


def _record(run: RunDirectory) -> dict[str, Any]:
    record = run.read_run().get("measured", {}).get("generation", {})
    return dict(record) if isinstance(record, dict) else {}
