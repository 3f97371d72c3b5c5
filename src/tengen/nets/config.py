"""The base class of network configs. Does not import torch.

Each kind is one file of this package (docs/tutorials/own_network.md). Configs declare
what a network can do, so no code lists the kinds or tests for a network's class.


Legend: B batch, C planes, H W board, A actions.

Plane 0 of every board observation is the on-board mask (1 on the board, 0 beyond it),
so planes of one size can hold boards of several sizes.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NoReturn, Self

from tengen import _core
from tengen.config import check
from tengen.errors import UsageError
from tengen.games.protocol import Game
from tengen.open_config import OpenConfig
from tengen.tensors import EMBEDDING, BoardSpec, Signature

NUM_HORIZONS: int = _core.NUM_HORIZONS
"""Number of short-term values that auxiliary heads estimate, one per horizon."""


class NetConfig(OpenConfig, package="tengen.nets"):
    """Base class of network configs, which define a network's kind and size."""

    @property
    def mixed_sizes(self) -> bool:
        """Whether a batch may contain boards of several sizes."""
        return False

    @property
    def fixed_size(self) -> bool:
        """Whether the network supports only one board size, in any policy layout."""
        return False

    @property
    def layer_norm(self) -> bool:
        """Whether layer normalization precedes each activation function."""
        return False

    @property
    def shares_parameters(self) -> bool:
        """Whether all agents of an environment share one network."""
        return True

    @property
    def can_quantise(self) -> bool:
        """Whether some of the network's layers can be computed in 8-bit integers."""
        return False

    @property
    def is_native(self) -> bool:
        """Whether the core evaluates the network on CPUs, without OpenVINO or torch."""
        return False

    def evaluator(self, board: BoardSpec, weights: Mapping[str, Any]) -> Any:
        """Returns the core's evaluation of a network, if ``is_native``.

        The result has a method ``evaluate(planes, policy, value, num_rows)``.

        Args:
            board: The shapes of the game's positions and actions.
            weights: All weights by name, as numpy arrays of a file.

        Raises:
            UsageError: The weights are not those of such a network, or the core does
                not evaluate networks of this kind.
        """
        raise UsageError(
            f"net.kind ({self.kind}) is not evaluated by the core; choose another "
            "inference.backend"
        )

    def signature(self, wanted: Signature) -> Signature:
        """Returns the signature of a network that provides the signature ``wanted``.

        The result is ``wanted`` plus the network's own state and, if the network
        estimates it, the score of a board game. The method is idempotent.

        Args:
            wanted: The inputs and outputs that an agent needs.

        Raises:
            UsageError: The network does not support these inputs or outputs.
        """
        return wanted

    def build(self, wanted: Signature) -> Any:
        """Returns a new ``Net`` with random weights from torch's generator.

        By default calls ``tengen.nets.modules.KIND.build`` with ``wanted`` and this
        config. If ``EMBEDDING`` is wanted, the result also judges novelty, and contains
        a network of this kind for the other outputs. Without ``shares_parameters`` the
        result contains a network of this kind for each agent; a config that overrides
        this method ignores ``shares_parameters``.

        Raises:
            UsageError: See ``signature``.
        """
        kind = self.kind if self.shares_parameters else "separate"
        kind = "novelty" if EMBEDDING in wanted.outputs else kind
        module = importlib.import_module(f"tengen.nets.modules.{kind}")
        return module.build(wanted, self)

    def targets(self, board: BoardSpec) -> frozenset[str]:
        """Returns the names of the auxiliary targets that the network learns.

        A subset of ``reply``, ``horizons``, ``ownership``, ``score`` and ``lead``.
        """
        return frozenset()

    def grown(self, size: NetConfig) -> NetConfig:
        """Returns a copy of this config, as large as the network of ``size``.

        Raises:
            UsageError: The network cannot grow.
        """
        self._refuse_growth()

    def check_grows(self, new: NetConfig) -> None:
        """Checks that the network can grow into ``new`` without changing its outputs.

        Raises:
            UsageError: The network cannot grow at all, or cannot grow into ``new``.
        """
        self._refuse_growth()

    def _of_my_kind(self, other: NetConfig) -> Self:
        """Returns ``other``.

        Raises:
            UsageError: ``other`` is of a different kind.
        """
        if not isinstance(other, type(self)):
            raise UsageError(f"net.kind ({other.kind}) must stay {self.kind}; keep it")
        return other

    def _check_kept(self, new: NetConfig, *names: str) -> None:
        """Raises UsageError if a field of ``new`` differs."""
        for name in names:
            before, after = getattr(self, name), getattr(new, name)
            check(after == before, name, after, f"must stay {before}; keep it")

    def _check_not_shrunk(self, new: NetConfig, *names: str) -> None:
        """Raises UsageError if a field of ``new`` is smaller."""
        for name in names:
            before, after = getattr(self, name), getattr(new, name)
            rule = f"must not shrink from {before}; raise it"
            check(after >= before, name, after, rule)

    def _refuse_growth(self) -> NoReturn:
        raise UsageError(f"net ({self.kind}) cannot grow; leave agent.stages out")


def board_of(game: Game) -> BoardSpec:
    """Returns the shapes of a game's positions and actions as a ``BoardSpec``."""
    return BoardSpec(
        num_planes=game.num_planes,
        height=game.height,
        width=game.width,
        num_actions=game.num_actions,
        policy_layout=game.policy_layout,
        max_score=game.max_score,
    )


def check_board(config: NetConfig, wanted: Signature) -> BoardSpec:
    """Returns ``wanted.board``, after checking that a board network can provide it.

    Raises:
        UsageError: The task is not a board game, or ``wanted`` has outputs other than
            policy, value and score.
    """
    if wanted.board is None:
        raise UsageError(
            f"net.kind ({config.kind}) needs a board, not {', '.join(wanted.inputs)}; "
            "choose a network for environments, such as mlp"
        )
    known = {*wanted.board.signature.outputs, "score"}
    others = sorted(wanted.outputs.keys() - known)
    check(
        not others,
        "net.kind",
        config.kind,
        f"has policy and value, not {', '.join(others)}; choose another network",
    )
    return wanted.board
