"""The tree of the reference search: positions, and what is proven of them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from tengen.games.protocol import State

__all__ = ["Node", "Proof", "prove"]


class Proof(enum.IntEnum):
    """What is known for certain of a position, for its side to play."""

    UNKNOWN = 0
    LOSS = 1
    DRAW = 2
    WIN = 3

    @property
    def value(self) -> float:  # type: ignore[override]
        """-1, 0 or 1; 0 where unknown."""
        return {Proof.LOSS: -1.0, Proof.WIN: 1.0}.get(self, 0.0)

    def opposite(self) -> Proof:
        """Returns the same fact as the other player sees it."""
        return {Proof.LOSS: Proof.WIN, Proof.WIN: Proof.LOSS}.get(self, self)


@dataclass(eq=False)
class Node:
    """A position in the tree. Values are of its own side to play."""

    state: State
    prior: dict[int, float] = field(default_factory=dict)
    """Legal action to prior, actions increasing; empty before the evaluation and where
    the game is over."""
    children: dict[int, Node] = field(default_factory=dict)
    """Visited legal actions, in the order of their first visit."""
    visits: int = 0
    """The position's own evaluation, and every descent through it."""
    value_sum: float = 0.0
    value_square_sum: float = 0.0
    """Of the same values as ``value_sum``."""
    value_to_play: float = 0.0
    """The evaluator's; 0 where the game is over."""
    proof: Proof = Proof.UNKNOWN

    @property
    def mean_value(self) -> float:
        """The mean over all visits, in [-1, 1]; needs one visit."""
        return self.value_sum / self.visits

    @property
    def mean_square(self) -> float:
        """The mean of the squares of the same values, in [0, 1]."""
        return self.value_square_sum / self.visits

    def child_proof(self, action: int) -> Proof:
        """Returns what is proven of a visited action, for this node's player."""
        child = self.children[action]
        if child.state.to_play == self.state.to_play:
            return child.proof
        return child.proof.opposite()

    def child_value(self, action: int) -> float:
        """Returns Q of a visited action, for this node's player, in [-1, 1]."""
        proof = self.child_proof(action)
        if proof != Proof.UNKNOWN:
            return proof.value
        child = self.children[action]
        same_player = child.state.to_play == self.state.to_play
        return child.mean_value if same_player else -child.mean_value

    def open_actions(self) -> list[int]:
        """Returns the actions not proven lost: visited ones, oldest first, the rest."""
        visited = [a for a in self.children if self.child_proof(a) != Proof.LOSS]
        return visited + [a for a in self.prior if a not in self.children]


def prove(node: Node) -> Proof:
    """Returns what the children prove of a node: the best that a move can reach.

    Unknown where no move wins and some move is unvisited or not settled.
    """
    proofs = [node.child_proof(action) for action in node.children]
    if Proof.WIN in proofs:
        return Proof.WIN
    if len(proofs) < len(node.prior) or Proof.UNKNOWN in proofs:
        return Proof.UNKNOWN
    return max(proofs)
