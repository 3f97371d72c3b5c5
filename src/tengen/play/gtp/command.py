"""``tengen gtp``: runs a Go model as a GTP engine.

This module has the handlers of the commands that search, score, or manage the session.

Source: Farneback 2002, "Specification of the Go Text Protocol, version 2", 6.3; the
documentation of Leela Zero and KataGo for analysis commands, and of GoGui.
"""

from __future__ import annotations

import argparse
from typing import Any

from tengen import _core
from tengen.config import check
from tengen.games.sgf import stones_on
from tengen.play.gtp.board_commands import BOARD_COMMANDS, TIME_COMMANDS
from tengen.play.gtp.engine import Engine, Handler, Resigning
from tengen.play.gtp.protocol import PLAYERS, Command, GtpError, read_player, words_of
from tengen.play.session.arguments import (
    add_session_arguments,
    load_for_session,
    read_input,
    write_output,
)
from tengen.play.session.searches import Limits
from tengen.play.session.session import LineReader


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command-line arguments of ``tengen gtp`` to ``parser``."""
    add_session_arguments(parser, ", katago:FILE or a bundled player, go/9 or go/7")
    parser.add_argument(
        "--name",
        default="tengen",
        metavar="TEXT",
        help="the program's name for the controller; Lizzie shows ownership and scores "
        "only if the name starts with KataGo (tengen)",
    )
    parser.add_argument(
        "--resign-below",
        type=float,
        default=None,
        metavar="VALUE",
        help="resign after the value, in [-1, 1], was below this at three consecutive "
        "own moves; -1: never (the model's, or never)",
    )


def gtp(args: argparse.Namespace) -> dict[str, Any]:
    """Serves a GTP controller on stdin and stdout until the controller quits.

    Raises:
        UsageError: The model cannot be used or does not play Go, or a number or a
            setting is invalid.
        RunError: The backend rejects the model.
    """
    below = args.resign_below
    check(
        below is None or -1 <= below < 1,
        "resign-below",
        below,
        "must be at least -1 and below 1; use -1 never to resign",
    )
    player, simulations, threads = load_for_session(args)
    with player:
        # With handicap stones, White begins behind and plays on.
        resigning = Resigning(player.resign_below, in_handicap=False)
        if below is not None:
            resigning = Resigning(below)
        engine = Engine(
            player,
            COMMANDS,
            simulations=simulations,
            threads=threads,
            write=write_output,
            lines=LineReader(read_input),
            name=args.name,
            resigning=resigning,
            ponders=args.ponder,
        )
        engine.run()
    return {}


_ANALYZE_COMMANDS = (
    "string/Final Score/final_score",
    "plist/Final Status Alive/final_status_list alive",
    "plist/Territory of Black/final_status_list black_territory",
    "plist/Territory of White/final_status_list white_territory",
    "string/Network/kata-raw-nn all",
)
# Additional GoGui analyze commands for networks that predict ownership.
_OWNER_COMMANDS = (
    "plist/Final Status Dead/final_status_list dead",
    "dboard/Expected Owners/tengen-ownership",
)


def _known_command(engine: Engine, command: Command) -> str:
    """Runs ``known_command``; the response is "false" if there is no argument."""
    name = command.words[0] if command.words else ""
    return "true" if name in COMMANDS else "false"


def _quit(engine: Engine, command: Command) -> str:
    engine.is_over = True
    return ""


def _clear_cache(engine: Engine, command: Command) -> str:
    engine.forget()
    return ""


def _genmove(engine: Engine, command: Command) -> str:
    return engine.move(read_player(words_of(command, 1)[0]))


def _reg_genmove(engine: Engine, command: Command) -> str:
    action, _ = engine.choose(read_player(words_of(command, 1)[0]))
    return engine.vertex(action)


def _analyze(engine: Engine, command: Command) -> None:
    engine.analyse(command, kata=command.name.startswith("kata-"))


def _genmove_analyze(engine: Engine, command: Command) -> None:
    player = read_player(words_of(command, 1)[0])
    engine.choose_aloud(command, player, kata=command.name.startswith("kata-"))


def _raw_nn(engine: Engine, command: Command) -> str:
    """Returns the network's outputs; the arguments are ``[colour] [symmetry]``.

    The argument symmetry is ignored: win, loss and policy use the symmetry that the
    search chooses, and the auxiliary heads' outputs are averages over all symmetries.
    """
    words = [word.lower() for word in command.words]
    position = engine.position.going_on()
    if words and words[0] in PLAYERS:
        position = position.turn_of(read_player(words.pop(0)))
    if words and words[0] not in (*"01234567", "all"):
        raise GtpError("syntax error")
    if position.state.is_terminal():
        raise GtpError("the game is over")
    found = engine.search(position.actions, Limits(0), 0.0)
    forecast = engine.forecast(position)
    is_white = position.state.to_play == 1
    value = found.network_value_to_play
    chance = 0.5 + 0.5 * (value if is_white else -value)
    height, width = engine.board
    priors = {row.action: f"{row.prior:.6f}" for row in found.actions}
    policy = [priors.get(point, "NAN") for point in range(height * width)]
    lines = [
        "symmetry 0",
        f"whiteWin {chance:.6f}",
        f"whiteLoss {1 - chance:.6f}",
        "noResult 0.000000",
    ]
    if forecast is not None:
        score, lead = forecast.score_to_play, forecast.lead_to_play
        lead = score if lead is None else lead
        lines.append(f"whiteLead {lead if is_white else -lead:.6f}")
        lines.append(f"whiteScoreSelfplay {score if is_white else -score:.6f}")
    lines += ["policy", *_rows(policy, width), f"policyPass {priors[height * width]}"]
    if forecast is not None:
        owners = forecast.ownership_to_play.ravel()
        texts = [f"{x:.6f}" for x in (owners if is_white else -owners)]
        lines += ["whiteOwnership", *_rows(texts, width)]
    return "\n".join(lines)


def _rows(texts: list[str], width: int) -> list[str]:
    return [
        " ".join(texts[first : first + width]) for first in range(0, len(texts), width)
    ]


def _ownership(engine: Engine, command: Command) -> str:
    """Returns predicted ownership as GoGui's ``dboard``, a line per row; 1: Black."""
    position = engine.position.going_on()
    forecast = engine.forecast(position)
    if forecast is None:
        raise GtpError("the network does not predict ownership")
    owners = forecast.ownership_to_play.ravel()
    texts = [f"{x:.3f}" for x in (-owners if position.state.to_play == 1 else owners)]
    return "\n".join(_rows(texts, engine.board[1]))


def _gogui_commands(engine: Engine, command: Command) -> str:
    has_owners = engine.forecast(engine.position) is not None
    return "\n".join((*_ANALYZE_COMMANDS, *(_OWNER_COMMANDS if has_owners else ())))


# A chain counts as dead if the opponent's mean ownership of its points exceeds this.
_DEAD_OWNERSHIP = 0.8


def _final_score(engine: Engine, command: Command) -> str:
    score = engine.position.score
    return f"{'B' if score > 0 else 'W'}+{abs(score):g}" if score else "0"


def _final_status_list(engine: Engine, command: Command) -> str:
    """Lists territory by the rules, and dead stones by the network's prediction.

    The status seki has no stones: area scoring has no special case for seki.
    """
    position = engine.position
    board = _core.GoPosition(position.game.name, position.actions)
    black, white = stones_on(position.state)
    stones = dict.fromkeys(black, 0) | dict.fromkeys(white, 1)
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
    """Returns the chains that the network predicts to be dead, as sorted points.

    Excludes pass-alive chains. Empty if the network does not predict ownership.
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


def _chains(stones: dict[int, int], height: int, width: int) -> list[list[int]]:
    """Returns the chains of ``stones`` as lists of points in increasing order."""
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


COMMANDS: dict[str, Handler] = {
    "protocol_version": lambda engine, command: "2",
    "name": lambda engine, command: engine.name,
    "version": lambda engine, command: engine.version,
    "known_command": _known_command,
    "list_commands": lambda engine, command: "\n".join(COMMANDS),
    "quit": _quit,
    **BOARD_COMMANDS,
    "final_score": _final_score,
    "final_status_list": _final_status_list,
    "genmove": _genmove,
    "reg_genmove": _reg_genmove,
    **TIME_COMMANDS,
    "lz-analyze": _analyze,
    "kata-analyze": _analyze,
    "lz-genmove_analyze": _genmove_analyze,
    "kata-genmove_analyze": _genmove_analyze,
    "kata-raw-nn": _raw_nn,
    "tengen-ownership": _ownership,
    "gogui-analyze_commands": _gogui_commands,
    # Does nothing: its name in list_commands lets GoGui send INTERRUPT.
    "gogui-interrupt": lambda engine, command: "",
    "clear_cache": _clear_cache,
    # Does nothing: the arrival of the line "stop" has already ended the search.
    "stop": lambda engine, command: "",
}
"""Handlers of all GTP commands by name, in the order of ``list_commands``."""
