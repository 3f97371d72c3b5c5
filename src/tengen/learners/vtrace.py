"""The V-trace loss on unrolls of the environment store."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tengen.learners.config import VtraceConfig
from tengen.learners.losses.vtrace import (
    baseline_loss,
    entropy_loss,
    policy_gradient_loss,
    vtrace_targets,
)

__all__ = ["VtraceLoss"]


class VtraceLoss:
    """Policy gradient, baseline and entropy losses with V-trace targets.

    Columns, B unrolls of T transitions: observation ``[B, T + 1, ...]`` float32, the
    last one only bootstraps; action ``[B, T]`` int64; reward ``[B, T]`` float32;
    terminated ``[B, T]`` uint8; is_reset ``[B, T]`` uint8; behaviour_logits
    ``[B, T, A]`` float32, the actor's policy when it acted.

    Observation t + 1 is the state that action t reached, also at the end of an
    episode. The transition after the end is marked is_reset: its observation is the
    final one, its action did nothing, and it reaches the next episode's first
    observation. It carries no loss. So a truncated episode bootstraps from its final
    observation and a terminated one from nothing, and no truncation flag is needed.
    """

    def __init__(self, config: VtraceConfig) -> None:
        """Makes the loss."""
        self._config = config

    def __call__(
        self, net: nn.Module, columns: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns the loss and its parts, means over all B * T transitions.

        Args:
            net: A vector network.
            columns: As in the class docstring.
        """
        config = self._config
        observations = columns["observation"].transpose(0, 1)
        a_tm1 = columns["action"].transpose(0, 1)
        is_live = 1.0 - columns["is_reset"].transpose(0, 1).float()
        num_times, num_rows = observations.shape[:2]
        logits, values = net(observations.flatten(0, 1))
        logits = logits.view(num_times, num_rows, -1)[:-1]
        values = values.view(num_times, num_rows)
        with torch.no_grad():
            log_rho = _log_prob(logits, a_tm1) - _log_prob(
                columns["behaviour_logits"].transpose(0, 1), a_tm1
            )
            ended = columns["terminated"].transpose(0, 1).float()
            targets = vtrace_targets(
                v_tm1=values[:-1],
                v_t=values[1:],
                r_t=columns["reward"].transpose(0, 1),
                discount_t=config.discount * (1.0 - ended),
                rho_tm1=log_rho.exp() * is_live,
                trace_lambda=config.trace_lambda,
                clip_rho=config.clip_rho,
                clip_c=config.clip_c,
                clip_pg_rho=config.clip_pg_rho,
            )
        policy_loss = policy_gradient_loss(logits, a_tm1, targets.pg_advantages)
        value_loss = baseline_loss(values[:-1], targets.vs_tm1)
        entropy = -entropy_loss(logits)
        # A row that resets has ratio 0, so that its advantage and its error are 0.
        means = {
            "policy_loss": policy_loss.mean(),
            "baseline_loss": value_loss.mean(),
            "entropy": (entropy * is_live).mean(),
        }
        loss = (
            means["policy_loss"]
            + config.baseline_cost * means["baseline_loss"]
            - config.entropy_cost * means["entropy"]
        )
        return loss, means


def _log_prob(logits: Tensor, actions: Tensor) -> Tensor:
    return logits.log_softmax(-1).gather(-1, actions[..., None]).squeeze(-1)
