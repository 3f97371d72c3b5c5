"""Which network, and how large: the family of their configs; no torch here.

A kind is one file of this package (docs/tutorials/own_network.md); nobody lists them,
and nobody asks for a network's class: what a network can do besides is in its config.

Legend: B batch, C planes, H W board, A actions.

Plane 0 of every board observation is the on-board mask (1 on the board, 0 beyond it),
so that one network serves boards of several sizes inside one plane size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from tengen import _core
from tengen.config import check
from tengen.errors import UsageError
from tengen.games.protocol import Game
from tengen.open_config import OpenConfig
from tengen.tensors import BoardSpec, Signature

if TYPE_CHECKING:
    from tengen.nets.modules.net import Net

__all__ = ["NUM_HORIZONS", "NetConfig", "board_of", "build_net", "check_board"]

NUM_HORIZONS: int = _core.NUM_HORIZONS
"""Later values that a network with auxiliary heads is asked for."""


class NetConfig(OpenConfig, package="tengen.nets"):
    """A network's kind and size."""

    @property
    def mixed_sizes(self) -> bool:
        """Whether one batch may hold boards of several sizes."""
        return False

    @property
    def fixed_size(self) -> bool:
        """Whether it reads boards of one size alone, whatever the policy's layout."""
        return False

    @property
    def can_quantise(self) -> bool:
        """Whether there is something of it to compute in 8-bit integers."""
        return False

    def signature(self, wanted: Signature) -> Signature:
        """Returns what the network reads, answers and keeps.

        That is ``wanted``, the network's own state and, where it estimates one, the
        score of a board game. What it returns may be asked for again and stays.

        Args:
            wanted: What an agent asks for.

        Raises:
            UsageError: The network does not read or answer that.
        """
        return wanted

    def build(self, wanted: Signature) -> Net:
        """Returns a new network with random weights from torch's generator.

        Raises:
            UsageError: As ``signature``.
        """
        raise NotImplementedError

    def targets(self, board: BoardSpec) -> frozenset[str]:
        """Returns what it learns of a board game besides policy and outcome.

        Of ``reply``, ``horizons``, ``ownership``, ``score`` and ``lead``.
        """
        return frozenset()

    def grown(self, size: NetConfig) -> NetConfig:
        """Returns this config with the size of another one, as a stage names it.

        Raises:
            UsageError: The network cannot grow.
        """
        self._refuse_growth()

    def check_grows(self, new: NetConfig) -> None:
        """Makes sure that a network can grow into a larger one and compute the same.

        Raises:
            UsageError: The network cannot grow, or not into ``new``.
        """
        self._refuse_growth()

    def _refuse_growth(self) -> NoReturn:
        raise UsageError(
            f"net ({self.kind}) cannot grow; keep it, and leave out stages"
        )


def build_net(wanted: Signature, config: NetConfig) -> Net:
    """Returns a new network with random weights from torch's generator.

    Args:
        wanted: What it is asked with, and what it answers.
        config: Which network, and its size.

    Raises:
        UsageError: The network does not read or answer that.
    """
    return config.build(wanted)


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
    """Returns the board of what a network for boards is asked for.

    Raises:
        UsageError: It is no board game, or other answers than policy, value and score
            are wanted.
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
