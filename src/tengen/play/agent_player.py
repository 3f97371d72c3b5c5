"""The player that acts in an environment with a trained agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tengen import envs
from tengen.actors import LAST_REWARD, EnvironmentRows, clip_actions
from tengen.agents import EnvironmentAgent
from tengen.closable import Closable
from tengen.errors import UsageError
from tengen.evaluation.players import open_for_play
from tengen.games import check_typed
from tengen.inference import Backend
from tengen.models import ModelDir
from tengen.models.load import differences
from tengen.tensors import ACTION_MASK


@dataclass(frozen=True)
class AgentModel:
    """An opened model for an environment, with its agent and backend."""

    name: str
    """The name that the user gave for the model, such as a run's path."""
    directory: ModelDir
    """The model's directory."""
    agent: EnvironmentAgent
    """The agent, which chooses actions from the network's outputs."""
    backend: Backend
    """The backend that evaluates the network."""

    @property
    def task(self) -> str:
        """Name of the environment in which the model was trained."""
        return self.directory.meta.task


def open_agent(
    model: ModelDir, name: str, *, task: str | None = None, devices: str | None = None
) -> AgentModel:
    """Opens a model for an environment. Blocks while the model is compiled.

    Args:
        model: The model directory.
        name: The name of the model for error messages.
        task: The model's task, if the user specified it for this call. It is required
            for an environment defined by external Python code.
        devices: ``cpu`` or one GPU, such as ``cuda:0``; None for the CPU.

    Raises:
        UsageError: The model plays a board game or was trained for a task other than
            ``task``, or its environment cannot be created or has changed since
            training.
        RunError: The backend cannot load the model.
    """
    meta = model.meta
    if meta.signature.board is not None:
        raise UsageError(
            f"model ({name}) plays the game {meta.task}, which has no episodes; use "
            f"tengen match {name} mcts:1000"
        )
    check_typed(meta.task, task, name)
    agent = EnvironmentAgent.of_model(meta.agent, meta.signature, name)
    wrong = differences(meta.signature, agent.signature(meta.task))
    if wrong:
        raise UsageError(
            f"model ({name}) does not fit {meta.task}, which has changed: {wrong}; "
            "restore the environment of the training"
        )
    backend = open_for_play(model.path, 1, devices=devices or "cpu")
    return AgentModel(name, model, agent, backend)


class AgentPlayer(Closable):
    """A player that takes greedy actions, as in ``tengen eval --act greedy``.

    ``tengen eval`` itself is greedy by default, except for Atari: there, agents with a
    policy sample actions from it, and Q agents are epsilon-greedy with epsilon 0.001.

    ``tengen.load`` returns a player::

        player = tengen.load("runs/CartPole-v1")
        observation, _ = env.reset()
        player.reset()
        while not is_over:
            observation, reward, *_ = env.step(player.act(observation))

    The player stores the recurrent state and the last step of the episode. Not
    thread-safe.

    Args:
        model: The opened model.

    Attributes:
        name: The name with which the model was loaded.
        spec: The environment's observation and action spaces.
    """

    def __init__(self, model: AgentModel) -> None:
        """Creates the player and begins an episode.

        Raises:
            UsageError: The environment cannot be created.
        """
        self.name = model.name
        self._model: AgentModel | None = model
        # Close the environment at once: only its spec and conversions are used.
        self._env = envs.make(model.task, 1, 0)
        self._env.close()
        self.spec = self._env.spec
        signature = model.backend.signature
        self._num_rows = self.spec.num_agents
        self._rows = EnvironmentRows(signature, self.spec.actions, self._num_rows)
        self._runner = model.backend.bind(
            self._rows.inputs, self._rows.outputs, self._rows.state
        )
        self.reset()

    def close(self) -> None:
        """Releases the model. Idempotent."""
        self._model = None

    @property
    def needs_rewards(self) -> bool:
        """Whether ``act`` requires rewards, because the network takes them as input."""
        return LAST_REWARD in self._rows.inputs

    def reset(self) -> None:
        """Begins a new episode: clears the recurrent state and the last action."""
        self._last_action: Any = None
        self._was_present = np.zeros(self._num_rows, np.bool_)

    def act(self, observation: Any, reward: Any = None, action_mask: Any = None) -> Any:
        """Returns the greedy action for an observation.

        In an environment with several agents, all arguments and the result are dicts by
        agent, with the agents that are in the episode.

        Args:
            observation: The observation that the environment's ``reset`` or ``step``
                returned, possibly nested. For suites other than Gymnasium, the
                observation must have the form that the suite's own package returns.
            reward: The reward of the last action, a number. Required if
                ``needs_rewards``, except at an episode's first step; otherwise ignored.
            action_mask: ``info["action_mask"]`` of ``reset`` or ``step``, if the
                environment returns the mask of legal choices there.

        Returns:
            The action, an int or an array, for the environment's ``step``.

        Raises:
            UsageError: The player is closed, the observation or the mask does not fit
                the environment, or the reward or the mask is missing.
            RunError: A network output is not finite.
        """
        if self._model is None:
            raise UsageError(f"player ({self.name}) is closed; load it again")
        shown = self._env.observed(observation)
        if action_mask is not None and not self.spec.has_action_mask:
            raise UsageError(
                f"action_mask ({action_mask}) has no use for {self.name}, whose "
                f"environment had none in training; leave it out"
            )
        present = [str(agent) for agent in observation] if self.spec.agents else [""]
        rows = {agent: i for i, agent in enumerate(self.spec.agents or ("",))}
        is_present = np.array([agent in present for agent in rows])
        if self.spec.has_action_mask and ACTION_MASK not in shown:
            masks = envs.ActionMasks(self.spec.actions, self.name)
            shown[ACTION_MASK] = masks.all_legal(self._num_rows)
            for agent in present:
                mask = _of(action_mask, agent)
                shown[ACTION_MASK][rows[agent]] = masks.read(mask)[0]
        if self._last_action is None:
            self._rows.begin(shown)
        else:
            told = [
                self._told(_of(reward, agent)) if stays else 0.0
                for agent, stays in zip(
                    rows, is_present & self._was_present, strict=True
                )
            ]
            learned = self.spec.learned(np.array(told, np.float32))
            is_first = ~self._was_present
            self._rows.show(shown, self._last_action, learned, is_first)
        self._was_present = is_present
        self._runner.run(self._num_rows)
        self._rows.take_answers(self.name)
        chosen = self._model.agent.act_greedily(self._rows.outputs, self.spec.actions)
        self._last_action = chosen["action"]
        taken = clip_actions(self.spec.actions, self._last_action)
        if not self.spec.agents:
            return self._env.own_action(np.asarray(taken[0]))
        return {
            agent: self._env.own_action(np.asarray(taken[rows[str(agent)]]))
            for agent in observation
        }

    def _told(self, reward: float | None) -> float:
        if reward is None and self.needs_rewards:
            raise UsageError(
                "reward (None) is required after an episode's first step, because the "
                f"network of {self.name} has it as an input; pass act(observation, "
                "reward)"
            )
        return reward or 0.0


def _of(value: Any, agent: str) -> Any:
    """Returns the entry of an agent, if ``value`` is a dict by agent."""
    if not agent or not isinstance(value, Mapping):
        return value
    return {str(key): entry for key, entry in value.items()}.get(agent)
