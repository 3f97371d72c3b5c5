"""The base of the configs of networks: which kind, and how large. Imports no torch.

Each kind is one file of this package (docs/tutorials/own_network.md). No code lists the
kinds or tests for a network's class: a config says what else its network can do.

Legend: B batch, C planes, H W board, A actions.

Plane 0 of every board observation is the on-board mask (1 on the board, 0 beyond it),
so that one network serves boards of several sizes inside one plane size.
"""

from __future__ import annotations

import importlib
from typing import Any, NoReturn

from tengen import _core
from tengen.config import check
from tengen.errors import UsageError
from tengen.games.protocol import Game
from tengen.open_config import OpenConfig
from tengen.tensors import BoardSpec, Signature

__all__ = ["NUM_HORIZONS", "NetConfig", "board_of", "check_board"]

NUM_HORIZONS: int = _core.NUM_HORIZONS
"""Number of horizons whose values a network with auxiliary heads estimates."""


class NetConfig(OpenConfig, package="tengen.nets"):
    """A network's kind and size."""

    @property
    def mixed_sizes(self) -> bool:
        """Whether one batch may hold boards of several sizes."""
        return False

    @property
    def fixed_size(self) -> bool:
        """Whether it reads boards of only one size, whatever the policy's layout."""
        return False

    @property
    def can_quantise(self) -> bool:
        """Whether some of its layers can be computed in 8-bit integers."""
        return False

    def signature(self, wanted: Signature) -> Signature:
        """Returns the signature of the network for a wanted signature.

        The result is ``wanted`` plus the network's own state and, where it estimates
        one, the score of a board game. For a returned signature the result is equal.

        Args:
            wanted: The inputs and outputs that an agent needs.

        Raises:
            UsageError: The network cannot have these inputs or outputs.
        """
        return wanted

    def build(self, wanted: Signature) -> Any:
        """Returns a new ``Net`` with random weights from torch's generator.

        The network of a kind that defines no ``build`` is what the function ``build``
        of ``tengen.nets.modules.KIND`` returns for ``wanted`` and the config.

        Raises:
            UsageError: As ``signature``.
        """
        module = importlib.import_module(f"tengen.nets.modules.{self.kind}")
        return module.build(wanted, self)

    def targets(self, board: BoardSpec) -> frozenset[str]:
        """Returns the targets that it learns in a board game beside policy and outcome.

        They are some of ``reply``, ``horizons``, ``ownership``, ``score``, ``lead``.
        """
        return frozenset()

    def grown(self, size: NetConfig) -> NetConfig:
        """Returns this config with the size of another one, for a stage.

        Raises:
            UsageError: The network cannot grow.
        """
        self._refuse_growth()

    def check_grows(self, new: NetConfig) -> None:
        """Checks that the network can grow into a larger one that computes the same.

        Raises:
            UsageError: The network cannot grow, or not into ``new``.
        """
        self._refuse_growth()

    def _refuse_growth(self) -> NoReturn:
        raise UsageError(
            f"net ({self.kind}) cannot grow; keep it, and leave out stages"
        )


def board_of(game: Game) -> BoardSpec:
    """Returns the shapes of a game's positions and actions."""
    return BoardSpec(
        num_planes=game.num_planes,
        height=game.height,
        width=game.width,
        num_actions=game.num_actions,
        policy_layout=game.policy_layout,
        max_score=game.max_score,
    )


def check_board(config: NetConfig, wanted: Signature) -> BoardSpec:
    """Returns the board in a signature that is wanted of a network for boards.

    Raises:
        UsageError: The task is no board game, or other outputs than policy, value and
            score are wanted.
    """
    if wanted.board is None:
        raise UsageError(
            f"net.kind ({config.kind}) reads boards and not "
            f"{', '.join(wanted.inputs)}; choose a network for environments, as mlp"
        )
    known = {*wanted.board.signature.outputs, "score"}
    others = sorted(wanted.outputs.keys() - known)
    check(
        not others,
        "net.kind",
        config.kind,
        f"answers policy and value and not {', '.join(others)}; choose another network",
    )
    return wanted.board
