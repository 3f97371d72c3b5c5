"""The tree of the reference search: positions and their proven results."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from tengen.games.protocol import State


class Proof(enum.IntEnum):
    """The proven result of a position, for its side to play."""

    UNKNOWN = 0
    LOSS = 1
    DRAW = 2
    WIN = 3

    @property
    def value(self) -> float:  # type: ignore[override]
        """-1, 0 or 1; 0 if unknown."""
        return {Proof.LOSS: -1.0, Proof.WIN: 1.0}.get(self, 0.0)

    def opposite(self) -> Proof:
        """Returns the same result from the other player's view."""
        return {Proof.LOSS: Proof.WIN, Proof.WIN: Proof.LOSS}.get(self, self)


@dataclass(eq=False)
class Node:
    """A position in the tree. Values are from the view of its side to play.

    Values are the utility that the search maximises: win minus loss, plus optionally
    the utility of the score (`tests.oracle.search.score`).
    """

    state: State
    prior: dict[int, float] = field(default_factory=dict)
    """Legal action to prior, in increasing order; empty before the evaluation, and
    if the game has ended."""
    children: dict[int, Node] = field(default_factory=dict)
    """Visited legal actions, in the order of their first visit."""
    visits: int = 0
    """Counts the position's own evaluation and every simulation through it."""
    value_sum: float = 0.0
    value_square_sum: float = 0.0
    """Sum of the squares of the values in ``value_sum``."""
    value_to_play: float = 0.0
    """The evaluator's value; 0 if the game has ended."""
    proof: Proof = Proof.UNKNOWN
    settled_value: float = 0.0
    """The value of a settled position."""
    win_loss: float = 0.0
    """The evaluator's win minus loss; 0 if the game has ended."""
    score: tuple[float, float] = (0.0, 0.0)
    """Mean and standard deviation of the final score in points: the evaluator's or, in
    a settled position, those of the line of play that settles it."""
    win_loss_sum: float = 0.0
    score_sum: float = 0.0
    """Like ``value_sum``, the sums of win minus loss and of points."""

    @property
    def mean_value(self) -> float:
        """The mean value over all visits, in [-1, 1]; needs at least one visit."""
        return self.value_sum / self.visits

    @property
    def mean_square(self) -> float:
        """The mean square of the same values, in [0, 1]."""
        return self.value_square_sum / self.visits

    def child_proof(self, action: int) -> Proof:
        """Returns a visited action's proven result, for this node's player."""
        child = self.children[action]
        if child.state.to_play == self.state.to_play:
            return child.proof
        return child.proof.opposite()

    def child_value(self, action: int) -> float:
        """Returns Q of a visited action, for this node's player."""
        child = self.children[action]
        value = child.settled_value if child.proof else child.mean_value
        return self._sign(child) * value

    def child_win_loss(self, action: int) -> float:
        """Returns the mean of win minus loss after a visited action, in [-1, 1]."""
        child = self.children[action]
        value = child.proof.value if child.proof else child.win_loss_sum / child.visits
        return self._sign(child) * value

    def child_score(self, action: int) -> float:
        """Returns the mean score after a visited action, for this node's player."""
        return self._sign(self.children[action]) * self.children[action].mean_score

    @property
    def mean_score(self) -> float:
        """The mean score over all visits, in points; exact if settled."""
        return self.score[0] if self.proof else self.score_sum / self.visits

    def proven_score(self) -> float:
        """Returns the best score among the children that prove this node."""
        proving = [a for a in self.children if self.child_proof(a) == self.proof]
        return max(
            self._sign(self.children[a]) * self.children[a].score[0] for a in proving
        )

    def _sign(self, child: Node) -> int:
        return 1 if child.state.to_play == self.state.to_play else -1

    def open_actions(self) -> list[int]:
        """Returns the actions not proven lost, visited ones first, oldest first."""
        visited = [a for a in self.children if self.child_proof(a) != Proof.LOSS]
        return visited + [a for a in self.prior if a not in self.children]


def prove(node: Node) -> Proof:
    """Returns the result that the children prove: the best that a move can reach.

    Unknown if no move wins and some move is unvisited or not settled.
    """
    proofs = [node.child_proof(action) for action in node.children]
    if Proof.WIN in proofs:
        return Proof.WIN
    if len(proofs) < len(node.prior) or Proof.UNKNOWN in proofs:
        return Proof.UNKNOWN
    return max(proofs)
