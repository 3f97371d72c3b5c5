"""GTP commands that set the clock.

Source: Farneback 2002, "Specification of the Go Text Protocol, version 2", 6.3.3; the
time systems of KGS and of KataGo (docs/GTP_Extensions.md) from their own pages.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tengen.play.gtp.engine import Engine, Handler
from tengen.play.gtp.protocol import (
    Command,
    GtpError,
    read_number,
    read_player,
    read_whole,
    words_of,
)
from tengen.play.session.clock import Clock, TimeSettings

__all__ = ["TIME_COMMANDS"]

# Longer times count as unlimited, in seconds.
_MAX_TIME_S = 1e7
# The number of arguments of each system of KGS, and of those that KataGo adds.
_KGS_KINDS = {"none": 0, "absolute": 1, "byoyomi": 3, "canadian": 3}
_KATA_KINDS = {**_KGS_KINDS, "fischer": 2, "fischer-capped": 4}


def _seconds(word: str) -> float:
    return min(max(read_number(word), 0.0), _MAX_TIME_S)


def _limit(word: str) -> float:
    """Returns a limit in seconds; a negative number means no limit."""
    return math.inf if read_number(word) < 0 else _seconds(word)


def _canadian(main_s: float, period_s: float, count: int) -> TimeSettings:
    if period_s > 0 and count == 0:
        return TimeSettings()  # This means no limit in the protocol.
    if period_s > 0:
        return TimeSettings("canadian", main_s, period_s, count)
    return TimeSettings("absolute", main_s)


def _system(kinds: dict[str, int], words: tuple[str, ...]) -> TimeSettings:
    """Parses the name of a time system and its numbers."""
    kind, numbers = words[0].lower() if words else "", words[1:]
    if kind not in kinds:
        raise GtpError(f"unknown time system; known are {' '.join(kinds)}")
    if len(numbers) < kinds[kind]:
        raise GtpError("syntax error")
    if kind == "none":
        return TimeSettings()
    main_s = _seconds(numbers[0])
    if kind == "absolute":
        return TimeSettings("absolute", main_s)
    period_s = _seconds(numbers[1])
    if kind == "canadian":
        return _canadian(main_s, period_s, read_whole(numbers[2]))
    if kind == "byoyomi":
        count = read_whole(numbers[2])
        if count == 0 or period_s == 0:
            return TimeSettings("absolute", main_s)
        return TimeSettings("byoyomi", main_s, period_s, count)
    fischer = TimeSettings("fischer", main_s, period_s)
    if kind == "fischer":
        return fischer
    main_limit_s, move_limit_s = (_limit(word) for word in numbers[2:4])
    if main_limit_s < main_s:
        raise GtpError("the main time must not be above its limit")
    return replace(fischer, main_limit_s=main_limit_s, move_limit_s=move_limit_s)


def _time_settings(engine: Engine, command: Command) -> str:
    main, period, count = words_of(command, 3)[:3]
    settings = _canadian(_seconds(main), _seconds(period), read_whole(count))
    engine.clock = Clock(settings)
    return ""


def _kgs_time_settings(engine: Engine, command: Command) -> str:
    engine.clock = Clock(_system(_KGS_KINDS, command.words))
    return ""


def _kata_time_settings(engine: Engine, command: Command) -> str:
    engine.clock = Clock(_system(_KATA_KINDS, command.words))
    return ""


def _time_left(engine: Engine, command: Command) -> str:
    player, seconds, count = words_of(command, 3)[:3]
    engine.clock.set_left(read_player(player), _seconds(seconds), read_whole(count))
    return ""


TIME_COMMANDS: dict[str, Handler] = {
    "time_settings": _time_settings,
    "kgs-time_settings": _kgs_time_settings,
    "kata-time_settings": _kata_time_settings,
    "kata-list_time_settings": lambda engine, command: " ".join(_KATA_KINDS),
    "time_left": _time_left,
}
"""Commands by name."""
