"""GTP commands that set up and show the board, or set the clock.

Source: Farneback 2002, "Specification of the Go Text Protocol, version 2", 6.3; the
documentation of KGS and of KataGo (docs/GTP_Extensions.md) for time systems.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tengen import _core
from tengen.errors import TengenError, UsageError
from tengen.games.go_rules import read_go_rules, read_vertex, rules_as_json
from tengen.games.sgf import GoRecord, read_sgf, write_sgf
from tengen.play.board import make_board_text
from tengen.play.gtp.engine import Engine, Handler
from tengen.play.gtp.position import Position, Start
from tengen.play.gtp.protocol import (
    Command,
    GtpError,
    is_whole,
    read_number,
    read_player,
    read_whole,
    words_of,
)
from tengen.play.session.clock import Clock, TimeSettings

_MAX_KOMI = 361
_MAX_FILE_BYTES = 1 << 22


def _set_size(engine: Engine, width: int, height: int) -> None:
    rules = _rules_on(engine, height, width)
    engine.position = engine.placed(Start(rules.name, engine.position.start.komi))


def _rules_on(engine: Engine, height: int, width: int) -> _core.GoRules:
    rules = engine.rules_on(height, width)
    if rules is None:
        raise GtpError("unacceptable size")
    return rules


def _restart(engine: Engine, *stones: int) -> None:
    """Clears the board, and places ``stones`` as Black's handicap stones."""
    start = Start(
        engine.position.start.game,
        engine.position.start.komi,
        black_stones=tuple(sorted(stones)),
        first_player=int(bool(stones)),
    )
    engine.position = engine.placed(start)


def _boardsize(engine: Engine, command: Command) -> str:
    """Runs ``boardsize``, which some clients send with width and height."""
    words = words_of(command, 1)
    _set_size(engine, read_whole(words[0]), read_whole(words[min(len(words), 2) - 1]))
    return ""


def _rectangular_boardsize(engine: Engine, command: Command) -> str:
    width, height = words_of(command, 2)[:2]
    _set_size(engine, read_whole(width), read_whole(height))
    return ""


def _clear_board(engine: Engine, command: Command) -> str:
    _restart(engine)
    return ""


def _komi(engine: Engine, command: Command) -> str:
    komi = read_number(words_of(command, 1)[0]) + 0.0  # Adding 0.0 turns -0.0 into 0.0.
    if not math.isfinite(komi) or abs(komi) > _MAX_KOMI or 2 * komi != int(2 * komi):
        raise GtpError("unacceptable komi")
    start = dataclasses.replace(engine.position.start, komi=komi)
    engine.position = engine.placed(start, engine.position.moves)
    return ""


def _get_komi(engine: Engine, command: Command) -> str:
    return f"{engine.position.start.komi:g}"


def _play(engine: Engine, command: Command) -> str:
    colour, vertex = words_of(command, 2)[:2]
    player = read_player(colour)
    action = read_vertex(vertex, *engine.board)
    if action is None:
        raise GtpError("invalid coordinate")
    try:
        engine.position = engine.position.after(player, action)
    except _core.CoreError:
        raise GtpError("illegal move") from None
    return ""


def _play_sequence(engine: Engine, command: Command) -> str:
    """Runs ``gogui-play_sequence``: plays all moves, or none if one is illegal."""
    words = command.words
    if len(words) % 2:
        raise GtpError("syntax error")
    before = engine.position
    try:
        for colour, vertex in zip(words[::2], words[1::2], strict=True):
            _play(engine, dataclasses.replace(command, words=(colour, vertex)))
    except GtpError:
        engine.position = before
        raise
    return ""


def _undo(engine: Engine, command: Command) -> str:
    position = engine.position
    if not position.moves:
        raise GtpError("cannot undo")
    engine.position = Position(position.start, position.game, position.moves[:-1])
    return ""


def _showboard(engine: Engine, command: Command) -> str:
    position = engine.position
    last = position.moves[-1][1] if position.moves else None
    board = make_board_text(position.game).draw(position.state, last, colours=False)
    turn = ("Black (X)", "White (O)")[position.state.to_play]
    return f"{position.record().game}, {turn} to play\n{board}"


def _check_empty(engine: Engine) -> None:
    start = engine.position.start
    if engine.position.moves or start.black_stones or start.white_stones:
        raise GtpError("board not empty")


def _place(engine: Engine, stones: Iterable[int]) -> str:
    stones = list(stones)
    _restart(engine, *stones)
    return " ".join(engine.vertex(stone) for stone in stones)


def _fixed_handicap(engine: Engine, command: Command) -> str:
    _check_empty(engine)
    count = read_whole(words_of(command, 1)[0])
    try:
        return _place(engine, _core.handicap_points(*engine.board, count))
    except _core.CoreError:
        raise GtpError("invalid number of stones") from None


def _place_free_handicap(engine: Engine, command: Command) -> str:
    """Places the requested number of stones on handicap points, or fewer if needed."""
    _check_empty(engine)
    count = read_whole(words_of(command, 1)[0])
    for number in range(min(count, 9), 1, -1):
        try:
            return _place(engine, _core.handicap_points(*engine.board, number))
        except _core.CoreError:
            continue
    raise GtpError("invalid number of stones")


def _set_free_handicap(engine: Engine, command: Command) -> str:
    _check_empty(engine)
    height, width = engine.board
    stones = [read_vertex(word, height, width) for word in command.words]
    points = [stone for stone in stones if stone is not None]
    is_list = len(points) == len(set(points)) == len(stones)
    if not is_list or len(points) < 2 or max(points) == height * width:
        raise GtpError("bad vertex list")
    try:
        _place(engine, points)
    except UsageError:
        raise GtpError("bad vertex list") from None
    return ""


def _loadsgf(engine: Engine, command: Command) -> str:
    words_of(command, 1)
    try:
        path, num_moves = _file_and_moves(command)
        with path.open("rb") as file:
            text = file.read(_MAX_FILE_BYTES + 1)  # read_sgf rejects a file this long.
        record = read_sgf(text, main_line=True, num_moves=num_moves)
    except (OSError, ValueError, TengenError) as error:
        raise GtpError(f"cannot load file: {error}") from None
    for note in record.notes:
        print(f"tengen: loadsgf: {note}", file=sys.stderr)
    rules = _core.parse_go_name(record.game)
    played = _rules_on(engine, rules.height, rules.width)
    engine.position = _loaded(engine, played, record)
    return ""


def _file_and_moves(command: Command) -> tuple[Path, int | None]:
    """Returns the path of an SGF file, and how many moves to play (None for all).

    A number N after the path selects the position before move N. If a file exists whose
    name ends with the number, the number belongs to the path.
    """
    whole = Path(command.text)
    *name, last = command.text.rsplit(maxsplit=1)
    if not name or not is_whole(last) or whole.is_file():
        return whole, None
    return Path(name[0]), max(int(last) - 1, 0)


def _loaded(engine: Engine, played: _core.GoRules, record: GoRecord) -> Position:
    """Returns the position of an SGF record, under the session's rules."""
    said, black = _core.parse_go_name(record.game), record.black_stones
    if said.handicap:
        points = _core.handicap_points(said.height, said.width, said.handicap)
        black = tuple(sorted(points))
    start = Start(
        played.name,
        said.komi,
        black_stones=black,
        white_stones=record.white_stones,
        first_player=record.first_player,
    )
    moves = [
        ((record.first_player + number) % 2, action)
        for number, action in enumerate(record.moves)
    ]
    try:
        return engine.placed(start, moves)
    except (UsageError, _core.CoreError) as error:
        raise GtpError(f"cannot load file: {error}") from None


def _printsgf(engine: Engine, command: Command) -> str:
    text = write_sgf(engine.position.record())
    if not command.words:
        return text
    try:
        Path(command.text).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise GtpError(f"cannot write file: {error}") from None
    return ""


def _get_rules(engine: Engine, command: Command) -> str:
    return json.dumps(rules_as_json(engine.rules))


def _set_rules(engine: Engine, command: Command) -> str:
    said = read_go_rules(" ".join(words_of(command, 1)))
    rules = engine.rules
    if said is None or not engine.knows(*said):
        played = json.dumps(rules_as_json(rules))
        raise GtpError(f"unsupported rules; the model plays {played}")
    rules.ko, rules.may_suicide = said
    start = dataclasses.replace(engine.position.start, game=rules.name)
    try:
        engine.position = engine.placed(start, engine.position.moves)
    except (UsageError, _core.CoreError):
        raise GtpError("a move of this game is illegal under these rules") from None
    return ""


BOARD_COMMANDS: dict[str, Handler] = {
    "boardsize": _boardsize,
    "rectangular_boardsize": _rectangular_boardsize,
    "clear_board": _clear_board,
    "komi": _komi,
    "get_komi": _get_komi,
    "play": _play,
    "gogui-play_sequence": _play_sequence,
    "undo": _undo,
    "showboard": _showboard,
    "fixed_handicap": _fixed_handicap,
    "place_free_handicap": _place_free_handicap,
    "set_free_handicap": _set_free_handicap,
    "loadsgf": _loadsgf,
    "printsgf": _printsgf,
    "kata-get-rules": _get_rules,
    "kata-set-rules": _set_rules,
}
"""Handlers of the board commands, by command name."""


# The maximum time of a clock, in seconds; longer times are clipped to it.
_MAX_TIME_S = 1e7
# Number of arguments of each time system. KataGo has those of KGS and two more.
_KGS_KINDS = {"none": 0, "absolute": 1, "byoyomi": 3, "canadian": 3}
_KATA_KINDS = {**_KGS_KINDS, "fischer": 2, "fischer-capped": 4}


def _seconds(word: str) -> float:
    return min(max(read_number(word), 0.0), _MAX_TIME_S)


def _limit(word: str) -> float:
    """Returns a time limit in seconds; infinity for a negative number."""
    return math.inf if read_number(word) < 0 else _seconds(word)


def _canadian(main_s: float, period_s: float, count: int) -> TimeSettings:
    if period_s > 0 and count == 0:
        return TimeSettings()  # GTP defines 0 stones in a period > 0 as no time limit.
    if period_s > 0:
        return TimeSettings("canadian", main_s, period_s, count)
    return TimeSettings("absolute", main_s)


def _system(kinds: dict[str, int], words: tuple[str, ...]) -> TimeSettings:
    """Parses the name of a time system and its arguments."""
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
"""Handlers of the time commands, by command name."""
