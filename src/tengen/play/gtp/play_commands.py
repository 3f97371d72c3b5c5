"""GTP commands that search, keep time, or speak of the session itself.

Source: Farneback 2002, "Specification of the Go Text Protocol, version 2", 6.3; the
time systems of KGS, the analysis of Leela Zero and of KataGo by their own pages.
"""

from __future__ import annotations

import math

from tengen.play.gtp.board_commands import BOARD_COMMANDS, read_player, read_whole
from tengen.play.gtp.clock import Clock, TimeSettings
from tengen.play.gtp.engine import Engine, Handler
from tengen.play.gtp.protocol import Command, GtpError
from tengen.play.gtp.thinking import Limits

__all__ = ["COMMANDS"]

# Longer is for ever, in seconds.
_MAX_TIME_S = 1e7
_ANALYZE_COMMANDS = (
    "string/Final Score/final_score",
    "plist/Final Status Alive/final_status_list alive",
    "plist/Territory of Black/final_status_list black_territory",
    "plist/Territory of White/final_status_list white_territory",
    "string/Network/kata-raw-nn all",
)


def _first(command: Command) -> str:
    if not command.words:
        raise GtpError("syntax error")
    return command.words[0]


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        raise GtpError("syntax error") from None
    if math.isnan(seconds):
        raise GtpError("syntax error")
    return min(max(seconds, 0.0), _MAX_TIME_S)


def _protocol_version(engine: Engine, command: Command) -> str:
    return "2"


def _name(engine: Engine, command: Command) -> str:
    return engine.name


def _version(engine: Engine, command: Command) -> str:
    return engine.version


def _known_command(engine: Engine, command: Command) -> str:
    return "true" if _first(command) in engine.command_names else "false"


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
    player = read_player(_first(command))
    action = engine.choose(player)
    engine.position = engine.position.after(player, action)
    return engine.vertex(action)


def _reg_genmove(engine: Engine, command: Command) -> str:
    return engine.vertex(engine.choose(read_player(_first(command))))


def _analyze(engine: Engine, command: Command) -> None:
    engine.analyse(command, kata=command.name.startswith("kata-"))


def _genmove_analyze(engine: Engine, command: Command) -> None:
    player = read_player(_first(command))
    engine.choose_aloud(command, player, kata=command.name.startswith("kata-"))


def _raw_nn(engine: Engine, command: Command) -> str:
    """The symmetry is the one that searches choose for the position."""
    position = engine.position
    if position.state.is_terminal():
        raise GtpError("the game is over")
    found = engine.search(position, Limits(0), 0.0)
    value = found.network_value_to_play
    chance = 0.5 + 0.5 * (value if position.state.to_play == 1 else -value)
    height, width = engine.board
    priors = {row.action: f"{row.prior:.6f}" for row in found.actions}
    rows = [
        " ".join(priors.get(row * width + column, "NAN") for column in range(width))
        for row in range(height)
    ]
    lines = (
        f"whiteWin {chance:.6f}",
        f"whiteLoss {1 - chance:.6f}",
        "noResult 0.000000",
        "policy",
        *rows,
        f"policyPass {priors[height * width]}",
    )
    return "\n".join(lines)


def _time_settings(engine: Engine, command: Command) -> str:
    if len(command.words) < 3:
        raise GtpError("syntax error")
    main_s, period_s = (_seconds(word) for word in command.words[:2])
    count = read_whole(command.words[2])
    if period_s > 0 and count == 0:
        settings = TimeSettings()  # how the protocol says that there is no limit
    elif period_s > 0:
        settings = TimeSettings("canadian", main_s, period_s, count)
    else:
        settings = TimeSettings("absolute", main_s)
    engine.clock = Clock(settings)
    return ""


def _kgs_time_settings(engine: Engine, command: Command) -> str:
    kind, words = _first(command).lower(), command.words[1:]
    needed = {"none": 0, "absolute": 1, "byoyomi": 3, "canadian": 3}
    if kind not in needed or len(words) < needed[kind]:
        raise GtpError("syntax error")
    if kind == "none":
        settings = TimeSettings()
    elif kind == "absolute":
        settings = TimeSettings("absolute", _seconds(words[0]))
    else:
        main_s, period_s = (_seconds(word) for word in words[:2])
        count = max(read_whole(words[2]), 1)
        is_byoyomi = kind == "byoyomi"
        settings = TimeSettings(
            "byoyomi" if is_byoyomi else "canadian", main_s, period_s, count
        )
    engine.clock = Clock(settings)
    return ""


def _time_left(engine: Engine, command: Command) -> str:
    if len(command.words) < 3:
        raise GtpError("syntax error")
    player = read_player(command.words[0])
    seconds = _seconds(command.words[1])
    engine.clock.set_left(player, seconds, read_whole(command.words[2]))
    return ""


def _gogui_commands(engine: Engine, command: Command) -> str:
    return "\n".join(_ANALYZE_COMMANDS)


COMMANDS: dict[str, Handler] = {
    "protocol_version": _protocol_version,
    "name": _name,
    "version": _version,
    "known_command": _known_command,
    "list_commands": _list_commands,
    "quit": _quit,
    **BOARD_COMMANDS,
    "genmove": _genmove,
    "reg_genmove": _reg_genmove,
    "time_settings": _time_settings,
    "kgs-time_settings": _kgs_time_settings,
    "time_left": _time_left,
    "lz-analyze": _analyze,
    "kata-analyze": _analyze,
    "lz-genmove_analyze": _genmove_analyze,
    "kata-genmove_analyze": _genmove_analyze,
    "kata-raw-nn": _raw_nn,
    "gogui-analyze_commands": _gogui_commands,
    "clear_cache": _clear_cache,
    "stop": _stop,
}
"""Every command by name, in the order of ``list_commands``."""
