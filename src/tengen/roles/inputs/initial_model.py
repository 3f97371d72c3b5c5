"""Runs that begin with the weights of a model."""

from __future__ import annotations

import dataclasses
import json

from tengen.bundled import BUNDLED, bundled_name
from tengen.config import check, to_dict
from tengen.errors import UsageError
from tengen.models import ModelDir, resolve_model
from tengen.models.load import differences
from tengen.nets import NetConfig
from tengen.roles.config import RunConfig
from tengen.run import RunDirectory
from tengen.tensors import Signature

__all__ = ["checked_initial_model", "fitting_model"]

_NAME = "learner.initial_model"


def checked_initial_model(config: RunConfig, run: RunDirectory) -> RunConfig:
    """Returns the config with ``learner.initial_model`` as the name of one model.

    A RUN becomes its present newest model; a bundled player keeps its name, wherever
    tengen is installed. A run that has a checkpoint does not read the model again, so
    the model may be gone.

    Raises:
        UsageError: There is no such model, or it does not fit.
    """
    if not config.learner.initial_model or run.checkpoints.latest() is not None:
        return config
    model = fitting_model(config, config.agent.signature(config.task))
    name = bundled_name(config.learner.initial_model)
    word = str(model.path.resolve()) if name is None else f"{BUNDLED}{name}"
    learner = dataclasses.replace(config.learner, initial_model=word)
    return dataclasses.replace(config, learner=learner)


def fitting_model(config: RunConfig, wanted: Signature) -> ModelDir:
    """Returns the model that a run begins with, verified.

    Args:
        config: The run's config, which names a model.
        wanted: The signature that the agent asks of a network for its task.

    Raises:
        UsageError: There is no such model, or the run's first network neither is the
            model's network nor can grow from it.
    """
    source, net = config.learner.initial_model, config.nets[0]
    try:
        model = resolve_model(source)
    except UsageError as error:
        raise UsageError(f"{_NAME} ({source}) cannot be used: {error}") from error
    theirs = model.meta
    wrong = differences(theirs.signature, wanted)
    check(
        not wrong,
        _NAME,
        source,
        f"must be a model with the shapes of {config.task}, not one of {theirs.task} "
        f"with {wrong}; choose another one",
    )
    if theirs.net == net:
        return model
    try:
        theirs.net.check_grows(net)
    except UsageError as error:
        raise UsageError(
            f"{_NAME} ({source}) must have the run's own network, or one that can grow "
            f"into it; it has {_others(theirs.net, net)}; set these"
        ) from error
    return model


def _others(theirs: NetConfig, net: NetConfig) -> str:
    """Returns what a network has otherwise than another, as settings."""
    ours = to_dict(net)
    return ", ".join(
        f"net.{name}={json.dumps(value)}"
        for name, value in to_dict(theirs).items()
        if name not in ours or value != ours[name]
    )
