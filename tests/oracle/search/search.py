"""The search in readable form: start here, then core/search/serial/search.h.

One search looks at one position. It starts with the root alone and performs
``num_simulations`` simulations. Each descends from the root along moves selected by
the policy, adds one new position to the tree, has it evaluated, and backs up the value
to every position on the path. Two policies select moves:

* PUCT, for hundreds of simulations per move: `tests.oracle.search.puct` (Silver et
  al. 2017, "Mastering the game of Go without human knowledge").
* Gumbel, for a few: `tests.oracle.search.gumbel` (Danihelka et al. 2022, "Policy
  improvement by planning with Gumbel").

The benchmark minigo has a search of its own, `tests.oracle.search.minigo`.

Differs from the papers: results of finished games are proven up the tree. A position is
won if one of its moves wins, and settled if all its moves are settled. A settled
position has an exact value and is not searched further; a move proven lost is not
tried again. Moves that the rules decide are looked up before the evaluation, see
`tests.oracle.search.decisive`.

If the final score counts as well, see `tests.oracle.search.score`. The score of a
settled position is that of the line of play that settles it; the search does not
continue for more points.

The native search is far faster and must build exactly the same tree; tests compare
the two node by node. Here a node lists and scores all its legal moves; the native
search scores the visited moves and the best unvisited ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tengen._core import LeftOut, Rng
from tengen.games.protocol import State
from tengen.search import SearchConfig
from tests.oracle.search.decisive import decisive_actions
from tests.oracle.search.gumbel import (
    GumbelRoot,
    improved_policy,
    select_below,
    target_mean,
)
from tests.oracle.search.puct import (
    add_root_noise,
    apply_root_temperature,
    exploration_scale,
    forced_action,
    select_puct,
)
from tests.oracle.search.score import Score, ScoreUtility
from tests.oracle.search.target import (
    best_by_lower_bound,
    prune_forced_playouts,
    training_target,
)
from tests.oracle.search.tree import Node, Proof, prove

Evaluate = Callable[[State], tuple[Sequence[float], float]]
"""A position's evaluation: logits ``[A]`` of any scale, used for legal moves only, and
``value_to_play`` in [-1, 1]."""

# Random streams, as numbered in core/base/rng.h.
_ROOT_NOISE = 2
_GUMBEL = 5


@dataclass
class SearchResult:
    """The result of a search. Dicts map each considered action, in increasing order."""

    visits: dict[int, int]
    policy: dict[int, float]
    """The training target; sums to 1."""
    root_value_to_play: float
    """Value of the root, win minus loss in [-1, 1]; exact if proven."""
    root_score_to_play: float
    """Expected final score in points; 0 if evaluations have none."""
    proof: Proof
    best_action: int
    """The strongest action by this search."""
    num_simulations: int
    """Simulations performed; fewer than requested if the root was proven or reused."""


class ReferenceSearch:
    """Searches positions of one game; reuses the tree between moves.

    ::

        search = ReferenceSearch(SearchConfig(), evaluate)
        result = search.search(state, num_simulations=200)
        state.apply(result.best_action)
        search.play(result.best_action)  # the next search reuses its subtree

    Args:
        config: The settings.
        evaluate: Called once for each new position, for example a network.
        estimate_score: Called likewise; returns the mean and standard deviation of
            the final score.
        final_score: Returns the score of a finished game, in points for the first
            player.
        board_side: Side length of the board.
        kind: The kind of the game, see `decisive_actions`; its moves are looked at only
            where no actions are left out.

    Attributes:
        root: The tree; None before the first search.
    """

    def __init__(
        self,
        config: SearchConfig,
        evaluate: Evaluate,
        estimate_score: Callable[[State], Score] = lambda state: (0.0, 0.0),
        final_score: Callable[[State], float] = lambda state: 0.0,
        board_side: float = 1.0,
        kind: str = "",
    ) -> None:
        self.config = config
        self._estimate_score = estimate_score
        self._final_score = final_score
        self._utility = ScoreUtility(config, board_side)
        self.root: Node | None = None
        self._evaluate = evaluate
        self._kind = kind
        self._explores = False
        self._left_out: Sequence[LeftOut] = ()
        self._gumbel: GumbelRoot | None = None
        self._kept: Node | None = None

    def search(
        self,
        state: State,
        num_simulations: int,
        *,
        explore: bool = False,
        seed: int = 0,
        generation: int = 0,
        game: int = 0,
        left_out: Sequence[LeftOut] = (),
    ) -> SearchResult:
        """Searches ``state``, which must not be terminal and is not modified.

        Args:
            state: The position; after `play`, the one that the moves led to.
            num_simulations: Simulations, including the visits of a reused subtree. A
                Gumbel search starts with an empty tree, as its schedule requires.
            explore: Whether to use root temperature and noise, or the Gumbel noise.
            seed: With ``generation``, ``game`` and the position's ply, selects the
                random stream: equal arguments give equal searches.
            generation: See ``seed``.
            game: See ``seed``.
            left_out: Actions that a player must not take above a given depth, unless it
                has no other; if not empty, no subtree is reused.
        """
        if left_out:
            self._kept = None
        self._left_out = left_out
        root = self._kept or self._new_root(state)
        self._kept = None
        self.root = root
        self._explores = explore
        # The root's own evaluation is not a simulation.
        num_left = num_simulations - (root.visits - 1)
        key = (seed, generation, game, state.ply)
        if self.config.policy == "gumbel":
            rng = Rng(*key, purpose=_GUMBEL) if explore else None
            self._gumbel = GumbelRoot(self.config, root, num_simulations, rng)
        elif explore:
            apply_root_temperature(self.config, root)
            add_root_noise(self.config, root, Rng(*key, purpose=_ROOT_NOISE))
        num_made = 0
        while num_made < num_left and root.proof == Proof.UNKNOWN:
            self._simulate(root)
            num_made += 1
        return self._result(root, num_made)

    def play(self, action: int) -> None:
        """Advances the tree by ``action``; keeps its subtree if possible."""
        child = self.root.children.get(action) if self.root else None
        is_whole = self.config.policy == "puct" and not self._left_out
        can_keep = child and child.prior and is_whole
        self._kept = self.root = child if can_keep else None

    def _simulate(self, root: Node) -> None:
        """Runs one simulation: selects a new or settled node, evaluates, backs up."""
        path = [root]
        while True:
            node = path[-1]
            action = self._select(node, is_root=node is root)
            is_new = action not in node.children
            if is_new:
                state = node.state.clone()
                state.apply(action)
                node.children[action] = Node(state)
            leaf = node.children[action]
            path.append(leaf)
            if is_new or leaf.proof != Proof.UNKNOWN:
                break
        if is_new and leaf.state.is_terminal():
            result = leaf.state.returns()[leaf.state.to_play]
            leaf.proof = {1: Proof.WIN, -1: Proof.LOSS}.get(int(result), Proof.DRAW)
            score_to_first = self._final_score(leaf.state)
            sign = 1 if leaf.state.to_play == 0 else -1
            self._settle(leaf, sign * score_to_first)
        elif is_new:
            _, proof = self._decisive(leaf.state)
            if proof:
                leaf.proof = proof
                self._settle(leaf, 0.0)
            else:
                self._expand(leaf, len(path) - 1)
        self._back_up(path)

    def _decisive(self, state: State) -> tuple[list[int], Proof]:
        if self._left_out:
            return state.legal_actions(), Proof.UNKNOWN
        return decisive_actions(state, self._kind)

    def _settle(self, node: Node, score: float) -> None:
        node.score = (score, 0.0)
        node.settled_value = self._utility.settled(node)

    def _new_root(self, state: State) -> Node:
        """Returns the evaluated node of ``state``, with one visit."""
        root = Node(state.clone())
        sign = 1 if state.to_play == 0 else -1
        self._utility.center_on(sign * self._estimate_score(state)[0])
        self._expand(root, 0)
        _add_visit(root, root.value_to_play, root.win_loss, root.score[0])
        return root

    def _expand(self, node: Node, depth: int) -> None:
        """Evaluates a node; sets its value, score and priors."""
        logits, node.win_loss = self._evaluate(node.state)
        node.score = self._estimate_score(node.state)
        to_play = node.state.to_play
        node.value_to_play = self._utility.of(node.win_loss, node.score, to_play)
        legal, _ = self._decisive(node.state)
        out = {
            other.action
            for other in self._left_out
            if other.player == node.state.to_play and depth < other.depth
        }
        legal = [action for action in legal if action not in out] or legal
        top = max(logits[action] for action in legal)
        powers = [math.exp(logits[action] - top) for action in legal]
        total = sum(powers)
        for action, power in zip(legal, powers, strict=True):
            node.prior[action] = power / total

    def _back_up(self, path: list[Node]) -> None:
        """Adds the leaf's visit to every node on the path."""
        leaf = path[-1]
        visit = (leaf.value_to_play, leaf.win_loss, leaf.score[0])
        if leaf.proof:
            visit = (leaf.settled_value, leaf.proof.value, leaf.score[0])
        _add_visit(leaf, *visit)
        for child, node in itertools.pairwise(reversed(path)):
            if child.state.to_play != node.state.to_play:
                visit = (-visit[0], -visit[1], -visit[2])
            if child.proof != Proof.UNKNOWN:
                node.proof = prove(node)
                if node.proof != Proof.UNKNOWN:
                    self._settle(node, node.proven_score())
                    visit = (node.settled_value, node.proof.value, node.score[0])
            _add_visit(node, *visit)

    def _select(self, node: Node, is_root: bool) -> int:
        if self.config.policy == "puct":
            forced = None
            if is_root and self._explores:
                forced = forced_action(self.config, node)
            return select_puct(self.config, node, is_root) if forced is None else forced
        if is_root and self._gumbel:
            return self._gumbel.select()
        return select_below(self.config, node)

    def _result(self, root: Node, num_simulations: int) -> SearchResult:
        visits = {
            action: root.children[action].visits if action in root.children else 0
            for action in root.prior
        }
        policy = training_target(root, self._weights(root, visits))
        best_action = None
        if root.children and not root.proof:
            if self._gumbel:
                best_action = self._gumbel.choose()
            elif self.config.lcb_stdevs > 0:
                best_action = best_by_lower_bound(self.config, root)
        if best_action is None:
            best_action = max(policy, key=lambda a: (policy[a], root.prior[a]))
        return SearchResult(
            visits=visits,
            policy=policy,
            root_value_to_play=self._root_value(root, policy),
            root_score_to_play=self._root_score(root, policy),
            proof=root.proof,
            best_action=best_action,
            num_simulations=num_simulations,
        )

    def _weights(self, root: Node, visits: dict[int, int]) -> dict[int, float]:
        """Returns the unnormalised training target."""
        if self.config.policy == "gumbel":
            return improved_policy(self.config, root)
        if self._explores and self.config.forced_playouts > 0 and not root.proof:
            scale = exploration_scale(self.config, root)
            return prune_forced_playouts(root, visits, scale)
        return {action: float(count) for action, count in visits.items()}

    def _root_value(self, root: Node, policy: dict[int, float]) -> float:
        if root.proof:
            return root.proof.value
        if self.config.policy == "gumbel":
            return target_mean(root, policy, root.win_loss, root.child_win_loss)
        return root.win_loss_sum / root.visits

    def _root_score(self, root: Node, policy: dict[int, float]) -> float:
        if root.proof == Proof.UNKNOWN and self.config.policy == "gumbel":
            return target_mean(root, policy, root.score[0], root.child_score)
        return root.mean_score


def _add_visit(node: Node, value: float, win_loss: float, score: float) -> None:
    node.visits += 1
    node.value_sum += value
    node.value_square_sum += value**2
    node.win_loss_sum += win_loss
    node.score_sum += score
