"""Opponents: earlier models of the run that act for the other teams of an episode.

Teams that always act with the newest model learn to beat only that model, and may
return to policies that earlier models beat. So in a share of the episodes one team,
chosen at random, acts with the newest model and learns, and the agents of all other
teams act with an earlier model. For the learner, the opponents' steps are reset steps.

Source: Bansal et al. 2018, "Emergent Complexity via Multi-Agent Competition"
(arXiv:1710.03748), section 3.2, for opponents from the run's history; Vinyals et al.
2019, "Grandmaster level in StarCraft II using multi-agent reinforcement learning",
methods, for the probabilities (prioritized fictitious self-play).
Differs from the papers: a model's probability is proportional to its mean result, and
at least 0.05 in that unit, so that every model stays an opponent.

Legend: N rows, C copies, n agents, k teams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.actors.actions import Slots
from tengen.actors.environment_rows import EnvironmentRows
from tengen.envs import EnvSpec, Step, team_rewards
from tengen.inference import Backend, RowArrays, Runner
from tengen.tensors import Signature

NUM_OPPONENTS = 10
"""Number of earlier models of a run from which opponents are drawn."""

_NONE = -1
# The opponent changes after the episodes of this part of the copies.
_PARTS = 4
_LEAST_WEIGHT = 0.05
# Weight of a new result in the moving mean of a model's results.
_RESULT_WEIGHT = 0.05


class Opponents:
    """The opponents in the episodes of C copies. Used by the thread of their port."""

    def __init__(
        self,
        spec: EnvSpec,
        signature: Signature,
        slots: Slots,
        share: float,
        seed: int,
        open_model: Callable[[int], Backend | None],
    ) -> None:
        """Creates an object without models, so that all teams act with the newest.

        Args:
            spec: The spec of the environment, which has several teams.
            signature: The signature of the network.
            slots: The range of the copies' rows among all rows of the run.
            share: Share of the episodes with an opponent, in [0, 1].
            seed: Seed of the random numbers, 0 to 2^64 - 1.
            open_model: Opens a model by its number; returns None if it was removed.
        """
        self._spec, self._share, self._seed = spec, share, seed
        self._first = slots.first // spec.num_agents
        names = list(spec.team_members)
        self._team_of = np.array([names.index(team) for team in spec.teams])
        num_copies = slots.count // spec.num_agents
        self._open = open_model
        # The moving mean of each model's results against newer models, in [0, 1].
        self._results: dict[int, float] = {}
        self._runners: dict[int, Runner] = {}
        self._batch = RowArrays(signature, slots.count)
        self._state = {n: np.zeros_like(a) for n, a in self._batch.state.items()}
        self._num_begun = np.zeros(num_copies, np.int64)
        self._returns = np.zeros((num_copies, len(names)))
        self._learning = np.zeros(num_copies, np.int64)
        # The opponent of the next episodes, and their number. Each model is evaluated
        # apart, so fewer at a time are faster.
        self._next, self._num_next = _NONE, 0
        # ``[C, n]``, the model of each row; _NONE for the newest.
        self._models = np.full((num_copies, spec.num_agents), _NONE, np.int64)

    def offer(self, numbers: Sequence[int]) -> None:
        """Sets the numbers of the models from which the next opponents are drawn."""
        self._results = {n: self._results.get(n, 0.5) for n in numbers}
        used = {*numbers, *self._models.flat}
        self._runners = {n: one for n, one in self._runners.items() if n in used}

    def answer(self, rows: EnvironmentRows) -> None:
        """Replaces the newest model's outputs in the opponents' rows."""
        batch, models = self._batch, self._models.ravel()
        for model in np.unique(models[models != _NONE]).tolist():
            found = np.flatnonzero(models == model)
            count = len(found)
            for name, array in batch.inputs.items():
                array[:count] = rows.inputs[name][found]
            for name, array in batch.state.items():
                array[:count] = self._state[name][found]
            self._runners[model].run(count)
            for name, array in batch.outputs.items():
                rows.outputs[name][found] = array[:count]
            for name, array in batch.state.items():
                self._state[name][found] = array[:count]

    def without(self, step: Step) -> Step:
        """Returns a step in which the opponents' rows are reset steps.

        They are also truncated, as at a change of the inference server, so that they do
        not count as ends of episodes.
        """
        is_theirs = self._models.ravel() != _NONE
        if not is_theirs.any():
            return step
        return step._replace(
            reward=np.where(is_theirs, np.float32(0), step.reward),
            terminated=step.terminated & ~is_theirs,
            truncated=np.where(is_theirs, ~step.is_reset, step.truncated),
            is_reset=step.is_reset | is_theirs,
        )

    def step(self, step: Step, is_reset: NDArray[np.bool_]) -> None:
        """Takes a step's results, and draws the opponents of episodes that begin.

        Args:
            step: The results of all rows, with rewards before clipping.
            is_reset: ``[C]``, whether the step began an episode of each copy.
        """
        rewards = team_rewards(step, self._spec)
        self._returns += np.stack(list(rewards.values()), axis=1)
        for array in self._state.values():
            array[step.is_reset] = 0
        if is_reset.any():
            self._end(is_reset)
            self.begin(np.flatnonzero(is_reset))

    def state(self) -> list[Any]:
        """Returns what must outlive the process: the results, as one JSON value."""
        return [[list(one) for one in sorted(self._results.items())]]

    def load_state(self, rows: Sequence[Any]) -> None:
        """Restores a ``state``; ignores numbers that are no results."""
        for number, result in rows[0] if rows else ():
            if 0 <= result <= 1:
                self._results[int(number)] = float(result)

    def _end(self, is_over: NDArray[np.bool_]) -> None:
        """Adds the results of episodes: 1 for the opponent's win, 1/2 for a draw."""
        for copy in np.flatnonzero(is_over).tolist():
            model = int(self._models[copy].max())
            if model not in self._results:
                continue
            own = self._returns[copy, self._learning[copy]]
            others = np.delete(self._returns[copy], self._learning[copy]).max()
            result = 0.5 + 0.5 * float(np.sign(others - own))
            self._results[model] += _RESULT_WEIGHT * (result - self._results[model])

    def begin(self, copies: Iterable[int]) -> None:
        """Begins episodes of some copies: draws their opponents."""
        for copy in copies:
            team, model = self._draw(copy)
            self._learning[copy], self._returns[copy] = team, 0.0
            self._models[copy] = np.where(self._team_of == team, _NONE, model)

    def _draw(self, copy: int) -> tuple[int, int]:
        """Draws the team that learns in a copy's next episode, and the opponent."""
        key = (self._seed, int(self._num_begun[copy]))
        self._num_begun[copy] += 1
        # The third counter keeps these numbers apart from those for actions.
        counter = (self._first + int(copy), 0, 2, 0)
        [[chance, team, which]] = _core.uniforms(key, counter, 1, 3)
        if chance >= self._share or not self._results:
            return 0, _NONE
        if self._num_next == 0:
            weights = [max(_LEAST_WEIGHT, one) for one in self._results.values()]
            ends = np.cumsum(weights)
            place = int(np.searchsorted(ends, which * ends[-1], side="right"))
            self._next = list(self._results)[min(place, len(ends) - 1)]
            self._num_next = -(-len(self._learning) // _PARTS)
        self._num_next -= 1
        model = self._next
        if model not in self._runners:
            backend = self._open(model)
            if backend is None:  # the model was removed after the last offer
                return 0, _NONE
            rows = self._batch
            runner = backend.bind(rows.inputs, rows.outputs, rows.state)
            self._runners[model] = runner
        return int(team * self._returns.shape[1]), model
