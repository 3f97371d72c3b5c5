"""Config values that MLPerf's closed division prescribes for minigo runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIXED: dict[str, Any] = {
    "task": "go/19/nosuicide/planes=minigo",
    "net.kind": "minigo",
    "net.num_blocks": 6,
    "net.num_channels": 64,
    "net.fc_width": 64,
    "net.policy_channels": 2,
    "net.value_channels": 1,
    "agent.kind": "alphazero",
    "agent.actor.search.policy": "minigo",
    "agent.actor.search.minigo_c_init": 1.25,
    "agent.actor.search.minigo_c_base": 19652.0,
    "agent.actor.search.minigo_value_penalty": 0.2,
    "agent.actor.search.minigo_virtual_losses": 4,
    "agent.actor.search.minigo_noise_alpha": 0.03,
    "agent.actor.search.noise_weight": 0.3,
    "agent.actor.full_simulations": 800,
    "agent.actor.cheap_simulations": 80,
    "agent.actor.full_probability": 0.25,
    "agent.actor.soft_pick_plies": 30,
    "agent.actor.soft_pick_exponent": 0.98,
    "agent.actor.restrict_pass_alive_after": 4,
    "agent.actor.resign_from": 0.9,
    "agent.actor.may_pass": True,
    "agent.actor.prunes_target": True,
    "agent.actor.settled_playout_share": 0.0,
    "agent.actor.switch_models": True,
    "agent.actor.variety": {
        "boards": [],
        "board_weights": [],
        "ko": [],
        "suicide": [],
        "komi_stdev": 0.0,
        "komi_wide_share": 0.0,
        "komi_wide_stdev": 12.0,
        "handicap_share": 0.0,
    },
    "agent.actor.max_opening_plies": 0,
    "agent.actor.policy_opening_plies": 0.0,
    "agent.actor.book_share": 0.0,
    "agent.actor.early_fork_share": 0.0,
    "agent.actor.late_fork_share": 0.0,
    "agent.actor.reduce_above": 1.0,
    "agent.actor.resign_above": 1.0,
    "agent.actor.policy_surprise_share": 0.0,
    "agent.actor.value_surprise_share": 0.0,
    "agent.loss.masks_illegal": False,
    "agent.loss.value_loss": "squared",
    "agent.loss.value_cost": 0.5,
    "agent.loss.search_value_share": 0.0,
    "agent.stages": [],
    "agent.learn_from": "",
    "agent.gate.kind": "accept_all",
    "agent.target.num_games": 256,
    "agent.target.num_simulations": 100,
    "agent.target.opening_plies": 0,
    "agent.target.win_rate": 0.5,
    "store.kind": "generations",
    "store.num_generations": 5,
    "store.min_games": 8192,
    "store.share": 0.3,
    "learner.epoch_samples": 1_000_000_000,
    "learner.num_shards": 1,
    "learner.optimizer.kind": "sgd",
    "learner.optimizer.momentum": 0.9,
    "learner.optimizer.nesterov": False,
    "learner.optimizer.weight_decay": 1e-4,
    "learner.optimizer.decays_scales": True,
    "learner.optimizer.max_grad_norm": 0.0,
    "learner.optimizer.average_decay": 0.0,
}
"""The prescribed values, by path in the config. The submitter may choose all other
settings: the batch size; the learning rates and their boundaries; the floating-point
precision of learning and self-play; and settings that do not affect results, such as
devices, threads and launch.

Source: MLPerf training rules v2.1, section on minigo and table of hyper-parameters;
``ml_perf/flags/19``.
"""

_OPPONENT = "agent.target.opponent"
# If this list is empty, tengen's own schedule of the learning rate applies (warm-up and
# cool-down), which the rules do not allow.
_RATES = "learner.optimizer.rates"
_GIVEN = {
    "learner.initial_model": "the benchmark's checkpoint",
    "store.imported": "the games of the benchmark's checkpoint",
    _OPPONENT: "the benchmark's target",
}
# An int8 model has rounded weights and is therefore not the benchmark's network. This
# concerns the run's models and the target in its matches.
_PRECISIONS = ("inference.precision", "agent.play.precision")


def open_because(config: Mapping[str, Any]) -> list[str]:
    """Returns the reasons why a config is not in MLPerf's closed division.

    Does not check that the files named in the config are the published ones.

    Args:
        config: The run's config, as JSON values.
    """
    found = []
    for path, wanted in FIXED.items():
        value = _lookup(config, path)
        if value != wanted:
            found.append(f"{path} ({value}) must be {wanted} in the closed division")
    for path, what in _GIVEN.items():
        value = _lookup(config, path) or "empty"
        if value == "empty" or (path == _OPPONENT and not _is_network(value)):
            found.append(f"{path} ({value}) must be {what} in the closed division")
    if not _lookup(config, _RATES):
        found.append(f"{_RATES} (empty) must be set in the closed division")
    for path in _PRECISIONS:
        if _lookup(config, path) == "int8":
            found.append(f"{path} (int8) must be fp32 or bf16 in the closed division")
    return found


def _is_network(opponent: str) -> bool:
    """Returns whether ``opponent`` may be a network with the benchmark's planes."""
    return opponent != "random" and not opponent.startswith(
        ("mcts:", "gtp:", "gomocup:", "katago:")
    )


def _lookup(config: Mapping[str, Any], path: str) -> Any:
    value: Any = config
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
