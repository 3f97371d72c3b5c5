"""The family of runs of games: its schedule, and the window of stored games."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tengen.agents.alphazero import AlphaZero
from tengen.experience import (
    ExperiencePart,
    GameWindow,
    GenerationsConfig,
    GenerationWindow,
    ShuffledRows,
    WindowConfig,
    check_window_memory,
)
from tengen.games import open_game
from tengen.nets import board_of
from tengen.roles.config.run_config import Family, RunConfig, Schedule
from tengen.run import RunDirectory
from tengen.store import Store

if TYPE_CHECKING:
    from tengen.transport import NetDoor


class Games(Family, agents=AlphaZero):
    """The family of all runs of games. Games are in files that any process can read."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self._agent = AlphaZero.of(config.agent, "selfplay")
        self.games = self._agent

    @property
    def schedule(self) -> Schedule:
        """See ``Family.schedule``."""
        agent = self._agent
        return Schedule(
            acting="" if agent.learn_from else "selfplay",
            learning=(
                *(("shuffle",) if self._is_shuffled else ()),
                *("learn", "export", "gate"),
            ),
            rating="rate" if agent.rating.time_share > 0 else "",
            rating_share=agent.rating.time_share,
            opponent=agent.target.opponent,
            num_models=agent.iterations,
            games_per_turn=agent.actor.games_per_generation,
        )

    def open_experience(
        self,
        run: RunDirectory,
        state: Mapping[str, Any] | None,
        directory: Path | None = None,
        net: NetDoor | None = None,
    ) -> GameWindow | GenerationWindow | ShuffledRows:
        """See ``Family.open_experience``."""
        config = self.config
        if self._is_shuffled:
            return ShuffledRows(config.task, run.shuffled, state)
        if isinstance(config.store, GenerationsConfig):
            return GenerationWindow(
                config.task,
                run.experience,
                config.store,
                config.seed,
                config.learner.batch_size,
                state,
            )
        return open_window(config, run, state)

    def open_part(
        self, run: RunDirectory, connect: Callable[[], Store]
    ) -> ExperiencePart:
        """See ``Family.open_part``."""
        return ExperiencePart(partial(self.open_experience, run))

    @property
    def _is_shuffled(self) -> bool:
        """Whether the role ``shuffle`` samples the learner's batches in advance."""
        store = self.config.store
        return isinstance(store, WindowConfig) and store.drawn_by == "shuffle"


def open_window(
    config: RunConfig, run: RunDirectory, state: Mapping[str, Any] | None
) -> GameWindow:
    """Returns the learner's or shuffler's window of games, restored to ``state``."""
    window = config.store
    assert isinstance(window, WindowConfig)
    check_window_memory(config.task, run.experience, window, state)
    board = board_of(open_game(config.task))
    return GameWindow(
        config.task,
        run.experience,
        window,
        config.seed,
        state,
        auxiliary=bool(config.net.targets(board)),
    )
