"""Opens the games that AlphaZero learns from, for each kind of store."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tengen import games
from tengen.config import check
from tengen.experience import (
    ExperiencePart,
    GameWindow,
    GenerationsConfig,
    GenerationWindow,
    ShuffledRows,
    WindowConfig,
    check_window_memory,
)
from tengen.nets import board_of

if TYPE_CHECKING:
    from tengen.roles.config import RunConfig
    from tengen.run import RunDirectory

__all__ = ["check_store", "is_shuffled", "open_games", "open_part", "open_window"]


def is_shuffled(config: RunConfig) -> bool:
    """Returns whether the learner reads rows that the role ``shuffle`` has drawn."""
    store = config.store
    return isinstance(store, WindowConfig) and store.drawn_by == "shuffle"


def check_store(config: RunConfig) -> None:
    """Checks that the store holds games and that a batch can be drawn from it.

    Raises:
        UsageError: The store is of another kind, or no batch can be drawn from it.
    """
    store = config.store
    check(
        isinstance(store, WindowConfig | GenerationsConfig),
        "store.kind",
        store.kind,
        "must be window or generations with agent alphazero; leave it out",
    )
    if not isinstance(store, WindowConfig):
        return
    batch_size, most = config.learner.batch_size, store.limiter.max_samples
    check(
        batch_size <= most,
        "learner.batch_size",
        batch_size,
        f"must be at most store.limiter.max_samples, {most:g}; lower it",
    )
    check(
        store.with_replacement or batch_size <= store.min_rows,
        "learner.batch_size",
        batch_size,
        f"must be at most store.min_rows, {store.min_rows}, where rows are drawn "
        f"without replacement; lower it",
    )


def open_games(
    config: RunConfig, run: RunDirectory, state: Mapping[str, Any] | None
) -> GameWindow | GenerationWindow | ShuffledRows:
    """Returns the experience that a learner draws from, restored to ``state``."""
    if is_shuffled(config):
        return ShuffledRows(config.task, run.shuffled, state)
    if isinstance(config.store, GenerationsConfig):
        return _open_generations(config, run, state)
    return open_window(config, run, state)


def open_part(config: RunConfig, run: RunDirectory) -> ExperiencePart:
    """Returns the experience of a following learner: a part of each batch."""
    return ExperiencePart(partial(open_games, config, run))


def open_window(
    config: RunConfig, run: RunDirectory, state: Mapping[str, Any] | None
) -> GameWindow:
    """Returns the window of games, restored to ``state``: for learner or shuffler."""
    window = config.store
    assert isinstance(window, WindowConfig)
    check_window_memory(config.task, run.experience, window, state)
    board = board_of(games.open_game(config.task))
    return GameWindow(
        config.task,
        run.experience,
        window,
        config.seed,
        state,
        auxiliary=bool(config.net.targets(board)),
    )


def _open_generations(
    config: RunConfig, run: RunDirectory, state: Mapping[str, Any] | None
) -> GenerationWindow:
    assert isinstance(config.store, GenerationsConfig)
    return GenerationWindow(
        config.task,
        run.experience,
        config.store,
        config.seed,
        config.learner.batch_size,
        state,
    )
