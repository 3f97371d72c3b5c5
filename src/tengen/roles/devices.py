"""The devices on which a run's roles compute."""

from __future__ import annotations

import dataclasses

from tengen.config import check, from_dict, to_dict
from tengen.errors import UsageError
from tengen.inference import (
    InferenceConfig,
    check_device_words,
    check_machine,
    check_num_gpus,
    default_devices,
    parse_devices,
)
from tengen.roles.config import RunConfig
from tengen.run import RunDirectory


def with_devices(
    config: RunConfig, devices: str | None, *, is_here: bool = True
) -> RunConfig:
    """Returns the config with inference and learner on the devices of ``--devices``.

    The learner uses the first device.

    Args:
        config: A run's config.
        devices: ``cpu``, or GPUs separated by commas; None changes nothing.
        is_here: Whether this host must have the devices. If not, the roles check the
            devices of their own hosts.

    Raises:
        UsageError: ``devices`` is not a list of devices, or this host lacks a GPU.
    """
    if devices is None:
        return config
    check_device_words("devices", devices)
    check(devices != "auto", "devices", devices, "must be a device; leave it out")
    if is_here:
        parse_devices("devices", devices)
    first = devices.split(",")[0]
    return dataclasses.replace(
        config,
        inference=dataclasses.replace(config.inference, devices=devices),
        learner=dataclasses.replace(config.learner, device=first),
    )


def move_run(
    run: RunDirectory, config: RunConfig, devices: str | None, *, is_here: bool = True
) -> RunConfig:
    """Applies ``--devices`` to the config of a run that may resume on other devices.

    Inference settings that were measured on other devices become ``auto`` again.

    Raises:
        UsageError: See ``with_devices``.
    """
    moved = with_devices(config, devices, is_here=is_here)
    was_measured = not run.is_new and "inference" in run.read_run().get("measured", {})
    if not was_measured or moved.inference.devices == config.inference.devices:
        return moved
    open_again = InferenceConfig(
        devices=moved.inference.devices, batch_rows=moved.inference.batch_rows
    )
    return dataclasses.replace(moved, inference=open_again)


def possible_inference(
    run: RunDirectory, inference: InferenceConfig
) -> InferenceConfig:
    """Returns inference settings that this machine supports.

    If the settings were measured on another machine, and this machine lacks their
    precision or backend, the measured values become ``auto`` again.

    Args:
        run: The run.
        inference: The run's settings, which this call's command line does not change.

    Raises:
        UsageError: The user chose a setting that this machine does not support.
    """
    try:
        check_machine(inference)
    except UsageError:
        content = {} if run.is_new else run.read_run()
        record = content.get("measured", {}).get("inference", {})
        now = to_dict(inference)
        if "asked" not in record or any(
            record[name] != now[name] for name in record.keys() & now.keys()
        ):
            raise
        where = str(run.path / "run.json")
        asked = from_dict(InferenceConfig, record["asked"], where)
        asked = dataclasses.replace(asked, devices=inference.devices)
        check_machine(asked)
        return asked
    return inference


def check_devices(config: RunConfig) -> None:
    """Checks that this host has the devices that a config names.

    The host must also have as many GPUs as the sum of ``launch.roles.ROLE.num_gpus``
    over all processes. On one machine the roles use the GPUs of ``--devices``.

    Raises:
        UsageError: This host lacks a GPU.
    """
    for name, devices in gpus_named(config).items():
        parse_devices(name, devices)
    given = {name: one for name, one in config.launch.roles.items() if one.num_gpus}
    check_num_gpus(
        " and ".join(f"launch.roles.{name}.num_gpus" for name in given),
        sum(one.count * one.num_gpus for one in given.values()),
        f"set launch.roles.{next(iter(given), '')}.num_gpus=0, or use --launch ray on "
        "a cluster with GPUs",
    )


def gpus_named(config: RunConfig) -> dict[str, str]:
    """Returns the config fields that name GPUs, with their values."""
    fields = {
        "inference.devices": config.inference.devices,
        "learner.device": config.learner.device,
    }
    return {name: text for name, text in fields.items() if text not in ("auto", "cpu")}


def learner_device(config: RunConfig) -> str:
    """Returns the device on which the learner computes.

    Raises:
        UsageError: The device is a GPU that this host lacks.
    """
    device = config.learner.device
    if device == "auto":
        device = config.inference.devices.split(",")[0]
    if device == "auto":
        device = default_devices()
    return parse_devices("learner.device", device)[0]
