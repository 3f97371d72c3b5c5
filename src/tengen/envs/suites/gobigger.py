"""GoBigger, in which balls eat smaller balls: tasks such as ``gobigger/t2p2``.

``t2p2`` has two teams of two players. The agents are the players of the first team, and
GoBigger's bots control the others. The reward is the change of the team's score, in
thousands; a food ball has 100. An episode has three minutes and steps of 1/4 second. A
player that was eaten begins again with a small ball.

An agent observes ``[289]`` float32: nine numbers of its own state and of the game, and
seven of each of the nearest food balls, thorns, spores and balls of players, see
``_SEEN``. An action is one of eight directions, in which it moves, ejects a spore or
splits its balls; the action mask has the actions that are possible.

Source: Zhang et al. 2023, "GoBigger: A Scalable Platform for Cooperative-Competitive
Multi-Agent Interactive Simulation" (ICLR 2023).
Differs from the paper: observations are vectors of a fixed length, and directions are
discrete.
"""

from __future__ import annotations

import functools
import math
import random
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tengen.envs.suites.suite import ParallelSuite

_LEVELS = ("t1p1", "t1p2", "t2p1", "t2p2", "t3p2", "t4p3", "t5p3", "t5p4", "t6p4")
_FRAMES = 5
_SCALE = 1000.0
# The number of balls that an agent sees of each kind: the nearest ones. The numbers of
# a ball are its position relative to the agent's centre, its radius, its velocity, and
# whether it is the agent's own, and of another agent of the team. Lengths have the unit
# of the distance from the centre to the edge of the agent's sight.
_SEEN = {"food": 16, "thorns": 4, "spore": 4, "clone": 16}
_OF_GAME, _OF_BALL = 9, 7
_ANGLES = [math.tau * i / 8 for i in range(8)]
_DIRECTIONS = [(math.cos(angle), math.sin(angle)) for angle in _ANGLES]


class _Team:
    """A game with PettingZoo's parallel interface."""

    def __init__(self, level: str) -> None:
        from gymnasium import spaces

        # Do not import GoBigger's windows, which need Tk and pytest.
        unused: Any = types.ModuleType("gobigger.render")
        unused.EnvRender = None
        sys.modules.setdefault("gobigger.render", unused)
        from gobigger import agents, balls, configs, server

        self._agents, self._server_class = agents, server.Server
        # These modules draw random numbers of Python's global generator.
        self._drawing = agents.bot_agent, balls.clone_ball
        self._config = getattr(configs, f"st_{level}")
        self.possible_agents = tuple(range(self._config.player_num_per_team))
        length = _OF_GAME + _OF_BALL * sum(_SEEN.values())
        self._seen = spaces.Dict(
            balls=spaces.Box(-1e3, 1e3, (length,), np.float32),
            action_mask=spaces.MultiBinary(3 * len(_DIRECTIONS)),
        )
        self._acted = spaces.Discrete(3 * len(_DIRECTIONS))
        self._random = random.Random(0)

    def observation_space(self, agent: int) -> Any:
        return self._seen

    def action_space(self, agent: int) -> Any:
        return self._acted

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        self._random = random.Random(seed) if seed is not None else self._random
        self._draw_from_own()
        self._server = self._server_class(self._config, self._random.getrandbits(31))
        self._server.reset()
        self.agents = list(self.possible_agents)
        others = self._server.get_player_names()[len(self.agents) :]
        self._bots = {one: self._agents.BotAgent(one) for one in others}
        return self._observed(), {}

    def step(self, actions: dict[int, int]) -> tuple[Any, ...]:
        self._draw_from_own()
        taken = {bot: own.step(self._states[bot]) for bot, own in self._bots.items()}
        for agent, action in actions.items():
            kind, direction = divmod(int(action), len(_DIRECTIONS))
            taken[agent] = [*_DIRECTIONS[direction], kind]
        before, acted = self._game["leaderboard"][0], self.agents
        is_over = self._server.step(taken)
        for _ in range(_FRAMES - 1):
            is_over = self._server.step()
        seen = self._observed()
        reward = (self._game["leaderboard"][0] - before) / _SCALE
        if is_over:
            self.agents = []
        rewards, ends, cuts = (
            dict.fromkeys(acted, x) for x in (reward, is_over, False)
        )
        return seen, rewards, ends, cuts, {}

    def close(self) -> None:
        self._bots = {}

    def _draw_from_own(self) -> None:
        for module in self._drawing:
            module.random = self._random

    def _observed(self) -> dict[int, Any]:
        self._game, self._states, _ = self._server.obs()
        return {agent: self._view(agent) for agent in self.possible_agents}

    def _view(self, agent: int) -> dict[str, Any]:
        game, state = self._game, self._states[agent]
        left, top, right, _ = state["rectangle"]
        half, can = (right - left) / 2, (state["can_eject"], state["can_split"])
        x, y = left + half, top + half
        scores, side = list(game["leaderboard"].values()), game["border"][0]
        seen = [x / side, y / side, half / side, *can]
        seen += [math.log10(state["score"] / _SCALE + 1)]
        seen += [scores[0] / sum(scores), max(scores) / sum(scores)]
        seen += [game["last_frame_count"] / game["total_frame"]]
        for kind, count in _SEEN.items():
            balls = []
            for ball in state["overlap"][kind]:
                # Food balls have no velocity, and only players' balls have owners.
                player, team = ball[8:10] or (None, None)
                lengths = [ball[0] - x, ball[1] - y, ball[2], *(ball[4:6] or (0, 0))]
                flags = player == agent, team == 0 and player != agent
                balls.append([*(length / half for length in lengths), *flags])
            balls.sort(key=lambda ball: ball[0] ** 2 + ball[1] ** 2)
            for ball in (balls + count * [[0.0] * _OF_BALL])[:count]:
                seen += ball
        mask = np.repeat([True, *can], len(_DIRECTIONS))
        return {"balls": np.array(seen, np.float32), "action_mask": mask}


class _Gobigger(ParallelSuite):
    def known(self) -> Iterable[str]:
        return _LEVELS

    def maker_of_one(self, name: str) -> Callable[..., Any]:
        return functools.partial(_Team, self.short_name(name))


SUITE = _Gobigger(prefix="gobigger/", package="gobigger", folders=())
"""The suite of the tasks ``gobigger/*``."""
