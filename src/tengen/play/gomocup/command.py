"""``tengen gomocup``: a model of gomoku for managers of the Gomocup protocol."""

from __future__ import annotations

import argparse
import time
from typing import Any

from tengen.play.gomocup.commands import COMMANDS
from tengen.play.gomocup.engine import Engine
from tengen.play.session.arguments import (
    add_session_arguments,
    load_for_session,
    read_input,
    write_output,
)
from tengen.play.session.lines import LineReader

__all__ = ["add_arguments", "gomocup"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``gomocup``."""
    add_session_arguments(parser, " or a bundled player, gomoku/15 or gomoku/9")


def gomocup(args: argparse.Namespace) -> dict[str, Any]:
    """Answers a manager on stdin and stdout until it leaves; returns nothing.

    Raises:
        UsageError: The model cannot be used or plays no gomoku, or a number or a
            setting is refused.
        RunError: The backend refuses the model.
    """
    # A match's time runs since the process was made: what it has computed is the least
    # of what it has lived.
    begun_s = time.monotonic() - time.process_time()
    player, simulations, threads = load_for_session(args)
    with player:
        engine = Engine(
            player,
            COMMANDS,
            simulations=simulations,
            threads=threads,
            write=write_output,
            lines=LineReader(read_input),
            ponders=args.ponder,
            begun_s=begun_s,
        )
        engine.run()
    return {}
