"""``run.json``: a run's config, and what was measured for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from tengen.config import from_dict, to_dict
from tengen.errors import UsageError
from tengen.inference import Choice, InferenceConfig
from tengen.nets import NetConfig
from tengen.roles.config.run_config import RunConfig
from tengen.run import SCHEMA, RunDirectory

__all__ = [
    "RUN_LOCK",
    "newest_inference",
    "open_inference",
    "read_config",
    "read_part",
    "record_config",
    "record_inference",
    "stages_schema",
    "write_config",
]

Part = TypeVar("Part")

# Fields that a measured choice shares with the config.
_CHOSEN = ("devices", "backend", "precision", "batch_shape", "device_rows")

# Settings of the agent in configs of earlier versions, beside ``actor`` and ``loss``.
_OF_SELFPLAY = ("stages", "learn_from", "gate", "rating")

RUN_LOCK = "run.json"
"""The lock for reading ``run.json``, changing it and writing it back."""


def write_config(
    run: RunDirectory,
    config: RunConfig,
    *,
    keeps_asked: bool = True,
    generation: Mapping[str, Any] | None = None,
) -> None:
    """Publishes ``run.json``.

    Args:
        run: The run.
        config: Its config from now on.
        keeps_asked: Whether measured settings may be measured again for another
            network; False where the user set them, even to the same values.
        generation: What ``asked_generations`` returned.

    Raises:
        RunError: The disk refuses.
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


def record_config(run: RunDirectory, config: RunConfig, **measured: Any) -> None:
    """Publishes a changed config, and what it was changed for; stages stay as they are.

    Args:
        run: The run; the caller holds ``RUN_LOCK``.
        config: Its config from now on.
        **measured: What was measured, by what it is about.

    Raises:
        RunError: The disk refuses.
    """
    content = run.read_run()
    measured = {**content.get("measured", {}), **measured}
    _write(run, config, measured, stages_schema(content))


def stages_schema(content: Mapping[str, Any]) -> int:
    """Returns the schema version of ``run.json`` that a run's stages come from.

    Roles of a later version also write the file, and leave the stages as they are.

    Args:
        content: What ``run.json`` holds.
    """
    return int(content.get("stages_schema", content["schema"]))


def read_config(run: RunDirectory) -> RunConfig:
    """Returns the config in ``run.json``.

    Raises:
        UsageError: The file has a newer schema, or keys that this code does not know.
        RunError: The file is damaged.
    """
    where = str(run.path / "run.json")
    return from_dict(RunConfig, _upgraded(run.read_run()["config"], where), where)


def read_part(run: RunDirectory, name: str, kind: type[Part]) -> Part:
    """Returns one part of the config in ``run.json``, and checks no other part.

    Args:
        run: The run.
        name: The part's field in ``RunConfig``.
        kind: The part's class.

    Raises:
        UsageError: As ``read_config``.
        RunError: The file is damaged.
    """
    where = str(run.path / "run.json")
    config = _upgraded(run.read_run()["config"], where)
    return from_dict(kind, config.get(name, {}), where)


def record_inference(
    run: RunDirectory, choice: Choice, asked: InferenceConfig, net: NetConfig
) -> RunConfig:
    """Writes the measured choice into ``run.json``, once for each network.

    Args:
        run: The run.
        choice: What was measured.
        asked: The settings before the choice, with ``auto`` where a value was left
            open; see ``open_inference``.
        net: The network.

    Returns:
        The config with the choice.

    Raises:
        RunError: The disk refuses.
    """
    with run.lock(RUN_LOCK, wait=True):
        config = dataclasses.replace(read_config(run), inference=choice.config)
        record = {**choice.record(), "asked": to_dict(asked), "net": to_dict(net)}
        record_config(run, config, inference=record)
    return config


def open_inference(run: RunDirectory, net: NetConfig) -> InferenceConfig | None:
    """Returns the settings that were left open, if a network is to be measured anew.

    None where the choice was made for this network, where nothing was chosen, or where
    the user has changed a setting since. A run of an earlier version does not say which
    network its choice was made for, and keeps it.

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
    """Returns the current inference settings: export chooses them for each new network.

    Args:
        run: The run.
        config: The config that the role was started with; its devices stay.

    Raises:
        RunError: ``run.json`` is damaged.
    """
    now = read_part(run, "inference", InferenceConfig)
    return dataclasses.replace(now, devices=config.inference.devices)


def _write(
    run: RunDirectory, config: RunConfig, measured: dict[str, Any], stages: int
) -> None:
    # A program that only looks at a run finds its roles here, and imports no agent.
    run.write_run(
        {
            "config": to_dict(config),
            "measured": measured,
            "stages_schema": stages,
            "roles": list(config.schedule.needed),
        }
    )


def _upgraded(config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Returns the config of a ``run.json`` as ``RunConfig`` is written today.

    Before agents were parts of a config, ``agent`` was a name, and the agent's settings
    stood beside it.

    Args:
        config: The config as it was read.
        where: The file, for the message.

    Raises:
        UsageError: The config's agent stores its experience differently now.
    """
    name = config.get("agent")
    if not isinstance(name, str):
        return config
    actor = config.get("actor")
    if isinstance(actor, Mapping) and actor.get("kind", "selfplay") != "selfplay":
        raise UsageError(
            f"agent ({name}) of {where} is of an earlier version, whose experience "
            f"this version cannot read; choose another --out"
        )
    moved = (*_OF_SELFPLAY, "actor", "loss")
    agent = {key: _without_kind(key, config[key]) for key in moved if key in config}
    rest = {key: value for key, value in config.items() if key not in moved}
    return {**rest, "agent": {"kind": name, **agent}}


def _without_kind(key: str, value: Any) -> Any:
    if key not in ("actor", "loss") or not isinstance(value, Mapping):
        return value
    return {name: item for name, item in value.items() if name != "kind"}
