"""GTP commands that search, or speak of the session itself.

Source: Farneback 2002, "Specification of the Go Text Protocol, version 2", 6.3; the
analysis of Leela Zero and of KataGo and the commands of GoGui by their own pages.
"""

from __future__ import annotations

from tengen.play.gtp.board_commands import BOARD_COMMANDS, read_player
from tengen.play.gtp.engine import Engine, Handler
from tengen.play.gtp.protocol import Command, GtpError
from tengen.play.gtp.score_commands import SCORE_COMMANDS
from tengen.play.gtp.time_commands import TIME_COMMANDS
from tengen.play.session.thinking import Limits

__all__ = ["COMMANDS"]

_ANALYZE_COMMANDS = (
    "string/Final Score/final_score",
    "plist/Final Status Alive/final_status_list alive",
    "plist/Territory of Black/final_status_list black_territory",
    "plist/Territory of White/final_status_list white_territory",
    "string/Network/kata-raw-nn all",
)
# Of networks that know of owners.
_OWNER_COMMANDS = (
    "plist/Final Status Dead/final_status_list dead",
    "dboard/Expected Owners/tengen-ownership",
)


def _first(command: Command) -> str:
    if not command.words:
        raise GtpError("syntax error")
    return command.words[0]


def _protocol_version(engine: Engine, command: Command) -> str:
    return "2"


def _name(engine: Engine, command: Command) -> str:
    return engine.name


def _version(engine: Engine, command: Command) -> str:
    return engine.version


def _known_command(engine: Engine, command: Command) -> str:
    """Never fails: no word is the name of no command."""
    name = command.words[0] if command.words else ""
    return "true" if name in engine.command_names else "false"


def _list_commands(engine: Engine, command: Command) -> str:
    return "\n".join(engine.command_names)


def _quit(engine: Engine, command: Command) -> str:
    engine.is_over = True
    return ""


def _stop(engine: Engine, command: Command) -> str:
    """Ends a search when it is the next line; afterwards there is none to end."""
    return ""


def _clear_cache(engine: Engine, command: Command) -> str:
    engine.clear_cache()
    return ""


def _genmove(engine: Engine, command: Command) -> str:
    return engine.move(read_player(_first(command)))


def _reg_genmove(engine: Engine, command: Command) -> str:
    action, _ = engine.choose(read_player(_first(command)))
    return engine.vertex(action)


def _analyze(engine: Engine, command: Command) -> None:
    engine.analyse(command, kata=command.name.startswith("kata-"))


def _genmove_analyze(engine: Engine, command: Command) -> None:
    player = read_player(_first(command))
    engine.choose_aloud(command, player, kata=command.name.startswith("kata-"))


def _raw_nn(engine: Engine, command: Command) -> str:
    """``[colour] [symmetry]``; win, loss and policy are what a search begins with.

    The symmetry is the one that searches choose for the position, and for what the
    auxiliary heads say it is the mean over all.
    """
    words = [word.lower() for word in command.words]
    position = engine.position.going_on()
    if words and words[0] in ("b", "black", "w", "white"):
        position = position.turn_of(read_player(words.pop(0)))
    if words and words[0] not in (*"01234567", "all"):
        raise GtpError("syntax error")
    if position.state.is_terminal():
        raise GtpError("the game is over")
    found = engine.search(position, Limits(0), 0.0)
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
    """As GoGui's ``dboard`` has it: rows from the top, 1 is Black's."""
    position = engine.position.going_on()
    forecast = engine.forecast(position)
    if forecast is None:
        raise GtpError("the network knows nothing of owners")
    owners = forecast.ownership_to_play.ravel()
    texts = [f"{x:.3f}" for x in (-owners if position.state.to_play == 1 else owners)]
    return "\n".join(_rows(texts, engine.board[1]))


def _gogui_commands(engine: Engine, command: Command) -> str:
    has_owners = engine.forecast(engine.position) is not None
    return "\n".join((*_ANALYZE_COMMANDS, *(_OWNER_COMMANDS if has_owners else ())))


def _gogui_interrupt(engine: Engine, command: Command) -> str:
    """Says that a comment ends a search; see ``INTERRUPT``."""
    return ""


COMMANDS: dict[str, Handler] = {
    "protocol_version": _protocol_version,
    "name": _name,
    "version": _version,
    "known_command": _known_command,
    "list_commands": _list_commands,
    "quit": _quit,
    **BOARD_COMMANDS,
    **SCORE_COMMANDS,
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
    "gogui-interrupt": _gogui_interrupt,
    "clear_cache": _clear_cache,
    "stop": _stop,
}
"""Every command by name, in the order of ``list_commands``."""
