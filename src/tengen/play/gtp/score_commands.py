"""GTP commands that say how a game stands: its score, and the status of its stones.

Source: Farneback 2002, "Specification of the Go Text Protocol, version 2", 6.3.3.
"""

from __future__ import annotations

from tengen import _core
from tengen.play.gtp.board_commands import words_of
from tengen.play.gtp.engine import Engine, Handler
from tengen.play.gtp.position import Position
from tengen.play.gtp.protocol import Command, GtpError

__all__ = ["SCORE_COMMANDS"]

# A chain is dead where the mean of its points is so surely the other side's.
_DEAD_OWNERSHIP = 0.8


def _final_score(engine: Engine, command: Command) -> str:
    score = engine.position.score
    return f"{'B' if score > 0 else 'W'}+{abs(score):g}" if score else "0"


def _final_status_list(engine: Engine, command: Command) -> str:
    """Points are the rules'; which stones are dead is what the network expects.

    Nothing is seki: by area its stones and eyes are their owner's.
    """
    position = engine.position
    board = _core.GoPosition(position.game.name, position.actions)
    stones = _stones(position)
    points = {"black_territory": 1, "white_territory": -1, "dame": 0}
    status = words_of(command, 1)[0].lower()
    if status in ("alive", "dead"):
        dead = _dead_chains(engine, stones, board)
        chains = [
            chain
            for chain in _chains(stones, *engine.board)
            if (chain in dead) == (status == "dead")
        ]
        return "\n".join(" ".join(map(engine.vertex, chain)) for chain in chains)
    if status == "seki":
        return ""
    if status not in points:
        raise GtpError("syntax error")
    return " ".join(
        engine.vertex(point)
        for point, owner in enumerate(board.area().ravel())
        if owner == points[status] and point not in stones
    )


def _dead_chains(
    engine: Engine, stones: dict[int, int], board: _core.GoPosition
) -> list[list[int]]:
    """Returns the chains that the network expects to be taken off in the end.

    None where it knows nothing of owners; never one that cannot be taken.
    """
    position = engine.position.going_on()
    forecast = engine.forecast(position)
    if forecast is None:
        return []
    is_black = position.state.to_play == 0
    owners = forecast.ownership_to_play.ravel() * (1 if is_black else -1)
    kept = board.pass_alive().ravel()
    dead = []
    for chain in _chains(stones, *engine.board):
        own = 1 if stones[chain[0]] == 0 else -1
        if own * owners[chain].mean() < -_DEAD_OWNERSHIP and kept[chain[0]] != own:
            dead.append(chain)
    return dead


def _stones(position: Position) -> dict[int, int]:
    """Returns whose stone stands on which point."""
    planes = position.state.observation().reshape(-1, position.game.num_actions - 1)
    mover = position.state.to_play
    return {
        int(point): player
        for plane, player in ((1, mover), (2, 1 - mover))
        for point in planes[plane].nonzero()[0]
    }


def _chains(stones: dict[int, int], height: int, width: int) -> list[list[int]]:
    """Returns the points of every chain, each in increasing order."""
    chains: list[list[int]] = []
    seen: set[int] = set()
    for first in sorted(stones):
        if first in seen:
            continue
        chain, todo = {first}, [first]
        while todo:
            row, column = divmod(todo.pop(), width)
            for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                y, x = row + down, column + right
                near = y * width + x
                is_here = 0 <= y < height and 0 <= x < width and near not in chain
                if is_here and stones.get(near) == stones[first]:
                    chain.add(near)
                    todo.append(near)
        seen |= chain
        chains.append(sorted(chain))
    return chains


SCORE_COMMANDS: dict[str, Handler] = {
    "final_score": _final_score,
    "final_status_list": _final_status_list,
}
"""Commands by name."""
