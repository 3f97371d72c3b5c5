"""A straightforward reference for core/selfplay/plies/lead.h."""

from __future__ import annotations

from collections.abc import Callable

import tengen.games
from tengen import _core
from tengen.search import SearchConfig
from tests.oracle.search import Evaluate, ReferenceSearch


def even_place(
    value: Callable[[int], float], value_here: float, lowest: int, highest: int
) -> float:
    """Returns the number of half points to give away to make the value 0.

    Args:
        value: Returns the position's value after giving away so many half points.
        value_here: The value with none given away.
        lowest: Half points at which the side to move has won.
        highest: Half points at which it has lost.
    """
    if value_here == 0:
        return 0.0
    ahead = value_here > 0
    direction, end = (1, highest) if ahead else (-1, lowest)
    values = {0: value_here, end: -1.0 if ahead else 1.0}
    near, step = 0, 4
    while abs(end - near) > step:
        here = near + direction * step
        values[here] = value(here)
        if values[here] == 0:
            return here
        if (values[here] > 0) != ahead:
            end = here
            break
        near, step = here, 2 * step
    low, high = min(near, end), max(near, end)
    while high - low > 1:
        middle = (low + high) // 2
        values[middle] = value(middle)
        if values[middle] == 0:
            return middle
        if values[middle] > 0:
            low = middle
        else:
            high = middle
    return low + values[low] / (values[low] - values[high])


def slow_lead(
    record: _core.GameRecord,
    ply: int,
    evaluate: Evaluate,
    search: SearchConfig,
    num_simulations: int,
) -> float:
    """Returns the lead in points at a ply of a ``go/SIZE`` game.

    Each value comes from a search of a new game with that komi, played up to the ply.
    """
    moves = [*record.opening, *(one.action for one in record.plies[:ply])]
    size, _, komi_text = record.variant.partition("/komi=")
    komi = round(2 * float(komi_text or 7.5))
    num_points = int(size.removeprefix("go/")) ** 2
    own = -komi if len(moves) % 2 == 0 else komi

    def value(given: int) -> float:
        other = komi + given if len(moves) % 2 == 0 else komi - given
        name = size if other == 15 else f"{size}/komi={other / 2:g}"
        state = tengen.games.make(name).new_state()
        for action in moves:
            state.apply(action)
        result = ReferenceSearch(search, evaluate).search(state, num_simulations)
        return result.root_value_to_play

    here = record.plies[ply].root_value
    ends = own - 2 * num_points - 1, own + 2 * num_points + 1
    return even_place(value, here, *ends) / 2
