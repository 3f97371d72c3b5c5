"""RND: PPO with a second reward for observations that were rarely seen.

Source: Burda et al. 2018, "Exploration by Random Network Distillation"
(arXiv:1810.12894). A network learns to predict the features that a random network
computes from an observation. Its error, the intrinsic reward, is large for observations
unlike those that it was trained on, which leads the policy to places that it rarely
visits even if the environment gives no reward there.

Differs from the paper: the learner computes intrinsic rewards when it takes a batch,
not the actors; they are divided by the root mean square of their discounted sums, which
end with the unroll or the episode, and whose mean is not subtracted; the statistics of
observations begin with the first batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from tengen import envs
from tengen.agents.bases.policy_update import ReturnScale, RunningSquare
from tengen.agents.bases.unrolls import Unrolled, counted_rows, random_weights
from tengen.agents.ppo import Ppo, PpoUpdate
from tengen.bounds import bounded
from tengen.envs import ActionSpec, EnvSpec
from tengen.experience import ExperienceConfig
from tengen.learners import LossParts
from tengen.learners.update import load_module, module_state
from tengen.tensors import TensorSpec

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tengen.nets import Net

_VALUE = "intrinsic_value"
_REWARD = "intrinsic_reward"
# Prefix of columns with the observation that an action led to.
_REACHED = "reached/"
_PREDICTED = "predictor_weight"
# Prefix of the names of the predictor's and the random network's tensors.
_NOVELTY = "novelty."
# Intrinsic returns are scaled by their mean over many batches, so that the reward falls
# as the predictor learns; a scale of recent batches would cancel this.
_DECAY = 0.9999
_LEAST_SCALE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Rnd(Ppo):
    """Settings of RND; the module docstring gives the source and the differences."""

    kind: Literal["rnd"] = "rnd"  # type: ignore[assignment]
    """The agent's name, as in ``--agent``."""
    also_called: ClassVar[tuple[str, ...]] = ()
    entropy_cost: float = 0.001
    """Weight of the entropy bonus, at least 0. It prevails where nothing is novel."""
    intrinsic_discount: float = bounded(0.99, 0, 1)
    """Discount factor per step of intrinsic rewards, in [0, 1]. Their sum continues
    across the ends of episodes."""
    extrinsic_weight: float = bounded(2.0, 0, None, "use 2")
    """Weight of the advantages of the environment's rewards, at least 0."""
    intrinsic_weight: float = bounded(1.0, 0, None, "use 1")
    """Weight of the advantages of intrinsic rewards, at least 0; with 0, novelty has no
    effect on the policy."""
    predicted_share: float = bounded(0.02, 0, 1, above=True)
    """Probability that a transition trains the predictor in an epoch; above 0, at most
    1. With a smaller share, observations stay novel for longer."""

    def outputs_of(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """Returns PPO's outputs and ``intrinsic_value``; see ``EnvironmentAgent``."""
        return {**super().outputs_of(actions), _VALUE: TensorSpec()}

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> RndUpdate:
        """See ``Agent.make_update``."""
        return RndUpdate(self, envs.env_spec(task), net)


class RndUpdate(PpoUpdate):
    """PPO's update with two streams of rewards, and the loss of the predictor.

    A batch is that of ``PpoUpdate``. The reward of the last action of an episode
    depends on the final observation, which the predictor therefore learns too.
    """

    is_recordable = True
    # Where nothing is novel, normalised errors would make the policy deterministic.
    normalises = False

    def __init__(self, agent: Rnd, spec: EnvSpec, net: Net) -> None:
        """Creates the random network and its predictor.

        Args:
            agent: The agent's settings.
            spec: The description of the environment.
            net: The network in training, whose kind and size both networks have.
        """
        from tengen.nets.modules.novelty import Novelty

        super().__init__(agent, spec.actions)
        self._settings = agent
        self._names = tuple(spec.observations)
        # In evaluation mode, threads that compute losses leave the statistics alone.
        self.novelty = Novelty(net.config, spec.observations).eval()
        square = RunningSquare(_LEAST_SCALE, _DECAY)
        self._intrinsic_scale = ReturnScale(agent.intrinsic_discount, square)

    def parameters(self) -> list[Tensor]:
        """See ``Update.parameters``."""
        return list(self.novelty.predictor.parameters())

    def place(self, device: torch.device, dtype: torch.dtype) -> None:
        """See ``Update.place``; novelty is a small difference, computed in float32."""
        self.novelty.to(device)

    def scaled(self, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        """Adds the intrinsic rewards to ``PolicyUpdate.scaled``."""
        import torch

        from tengen.nets.modules.standard import counting

        columns = super().scaled(columns)
        # The last step is only for bootstrapping, so what follows it does not matter.
        reached = {name: columns[name].roll(-1, 1) for name in self._names}
        shape = columns["reward"].shape
        rows = {name: column.flatten(0, 1) for name, column in reached.items()}
        place = self.group.place(shape.numel())
        rows = {name: self.group.gather_rows(column) for name, column in rows.items()}
        self.novelty.train()
        is_counted = counted_rows(self.novelty, columns)
        if is_counted is not None:  # the order of the reached observations
            is_counted = self.group.gather_rows(is_counted.roll(-1, 0).T.flatten())
        with torch.no_grad(), counting(self.novelty, is_counted):
            novelty = self.novelty(rows)[place.first :][: shape.numel()].reshape(shape)
        self.novelty.eval()
        self._intrinsic_scale.observe(
            novelty[:, :-1],
            torch.zeros_like(columns["terminated"][:, :-1]),
            columns["is_reset"][:, :-1],
            self.group,
        )
        return {
            **columns,
            _REWARD: self._intrinsic_scale.scaled(novelty),
            **{_REACHED + name: column for name, column in reached.items()},
        }

    def targets(self, rows: Unrolled, ratio: Tensor | None) -> dict[str, Tensor]:
        """Adds intrinsic advantages, values and returns to ``PpoUpdate.targets``."""
        from tengen import losses

        agent, own = self._settings, super().targets(rows, ratio)
        intrinsic = losses.gae_targets(
            v=rows.outputs[_VALUE],
            reward=rows.columns[_REWARD],
            terminated=rows.columns["terminated"],
            is_reset=rows.columns["is_reset"],
            discount=agent.intrinsic_discount,
            trace_lambda=agent.trace_lambda,
            ratio=ratio,
            crosses_episodes=True,
        )
        return {
            **own,
            "advantage": agent.extrinsic_weight * own["advantage"]
            + agent.intrinsic_weight * intrinsic.advantages,
            "intrinsic_returns": intrinsic.returns,
            "behaviour_intrinsic_value": rows.outputs[_VALUE][:-1],
        }

    def minibatches(
        self, net: Net, columns: dict[str, Tensor]
    ) -> Iterator[dict[str, Tensor]]:
        """Adds the choice of rows that train the predictor; see ``PpoUpdate``."""
        for rows in super().minibatches(net, columns):
            action, share = rows["action"], self._settings.predicted_share
            weights = random_weights(self.group, len(action), share, action.device)
            yield {**rows, _PREDICTED: weights[:, None]}

    def value_loss(
        self, outputs: dict[str, Tensor], steps: dict[str, Tensor]
    ) -> Tensor:
        """Returns the sum of the losses of both values; see ``PpoUpdate``."""
        from tengen import losses

        intrinsic = losses.clipped_value_loss(
            outputs[_VALUE],
            steps["behaviour_intrinsic_value"],
            steps["intrinsic_returns"],
            self._settings.clip_value,
        )
        return super().value_loss(outputs, steps) + intrinsic

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """Adds the predictor's loss; see ``PpoUpdate.loss``."""
        found = super().loss(net, columns)
        reached = {name: columns[_REACHED + name].flatten(0, 1) for name in self._names}
        is_live = (columns["is_reset"] == 0).flatten()
        errors = self.novelty(reached) * is_live
        weights = columns[_PREDICTED].expand_as(columns["is_reset"]).flatten()
        loss = (errors * weights).mean()
        metrics = {
            **found.metrics,
            "novelty": errors.mean(),
            "intrinsic_reward": (columns[_REWARD].flatten() * is_live).mean(),
        }
        return found._replace(loss=found.loss + loss, metrics=metrics)

    def state(self) -> dict[str, Tensor]:
        """See ``Update.state``."""
        scale = self._intrinsic_scale.state()["return_scale"]
        kept = module_state(_NOVELTY, self.novelty)
        return {**super().state(), **kept, "intrinsic_scale": scale}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """See ``Update.load_state``."""
        super().load_state(tensors)
        self._intrinsic_scale.load_state({"return_scale": tensors["intrinsic_scale"]})
        load_module(_NOVELTY, self.novelty, tensors)
