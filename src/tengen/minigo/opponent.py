"""Checks the target of a run before training, and opens it for matches."""

from __future__ import annotations

import dataclasses
import hashlib
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tengen.config import check, from_dict, to_dict
from tengen.errors import RunError, UsageError
from tengen.evaluation.engines.side import check_engine
from tengen.evaluation.named_players import find_player, is_engine, open_model
from tengen.evaluation.players import EnginePlayer, MatchPlayer, ModelPlayer
from tengen.evaluation.target_config import TargetConfig
from tengen.games import is_program, open_game
from tengen.inference.foreign_graph import ForeignGraph
from tengen.minigo.target_files import TargetFiles
from tengen.models import KATAGO, ModelDir
from tengen.nets import board_of
from tengen.observe.target import TARGET_SCHEMA
from tengen.roles import RunConfig
from tengen.run import RunDirectory, file_sha256, publish_json, read_object
from tengen.search import PlayConfig

_NAME = "agent.target.opponent"
_ONNX = "onnx:"
_TERMS = "terms.json"
_TERMS_ADVICE = "remove the folder, and all games are played again"


def check_typed_opponent(
    opponent: str, typed: str | None, source: object, option: str
) -> None:
    """Rejects an engine's command that the user did not type. Starts no process.

    An engine is a command that tengen would execute, and ``run.json`` is untrusted.

    Args:
        opponent: The opponent, as ``run.json`` names it.
        typed: The opponent that the user typed in this call, or None.
        source: The run, for the error message.
        option: The option that takes the opponent, for the error message.

    Raises:
        UsageError: The opponent is an engine and was not typed, or a different opponent
            was typed.
    """
    if typed is None and is_engine(opponent):
        words = f"{option}{shlex.quote(opponent)}"
        raise UsageError(
            f"{_NAME} ({opponent}) of {source} is a program, which runs only if you "
            f"name it; add {words} to run it"
        )
    if typed not in (None, opponent):
        raise UsageError(
            f"opponent ({typed}) must be {opponent}, that of {source}; correct it"
        )


def checked_opponent(config: TargetConfig, task: str) -> TargetConfig:
    """Checks a target's opponent; returns the config with an absolute path. Blocks.

    So that errors surface before training, this compiles a network, evaluates some rows
    with an ONNX network, or starts a program and sets up a game.

    Args:
        config: The target's config, which names an opponent.
        task: The task to play.

    Raises:
        UsageError: The opponent does not exist or cannot play the task.
    """
    word = config.opponent
    if word.startswith(_ONNX):
        path = Path(word.removeprefix(_ONNX)).resolve()
        check(path.is_file(), _NAME, word, "must name a file; check the path")
        _check_graph(path, task)
        return dataclasses.replace(config, opponent=f"{_ONNX}{path}")
    try:
        found = find_player(word)
    except UsageError as error:
        raise UsageError(f"{_NAME} ({word}) cannot be used: {error}") from error
    if isinstance(found, EnginePlayer):
        found.check_game(task)
        _check_program(found)
        _check_answers(found, task)
        return config
    if not isinstance(found, ModelDir):
        return config
    if found.boards is not None:
        rule = f"plays Go, not {task}; choose another"
        check(task.startswith("go/"), _NAME, word, rule)
        full = f"{KATAGO}{Path(word.removeprefix(KATAGO)).resolve()}"
    else:
        _check_game(found, word, task)
        full = str(found.path.resolve())
    config = dataclasses.replace(config, opponent=full)
    try:
        open_opponent(config, task, PlayConfig(), 1)
    except (RunError, UsageError) as error:
        raise UsageError(f"{_NAME} ({word}) cannot be used: {error}") from error
    return config


def checked_target(
    config: RunConfig, run: RunDirectory, known: RunConfig | None, *, is_typed: bool
) -> RunConfig:
    """Checks a run's target; returns the config with an absolute path. Blocks.

    If ``agent.target.opponent`` is a RUN, the first call that names it selects its
    newest model, and later calls with the same opponent keep this model.

    Args:
        config: The config of this call.
        run: The run.
        known: The run's config before this call; None for a new run.
        is_typed: Whether the user typed the opponent in this call.

    Raises:
        UsageError: The opponent does not exist, is required but empty, cannot play the
            task, or is a program that the user did not type; or earlier matches were
            played with different settings.
    """
    agent = config.games
    if agent is None:
        return config
    target = agent.target
    if not target.opponent:
        check(
            not target.needs_opponent,
            "agent.target.opponent",
            "empty",
            "must be set for the run to have a result; set it, or set "
            "agent.target.needs_opponent=false to train without it",
        )
        return config
    if known is not None and not is_typed:
        option = "--set agent.target.opponent="
        check_typed_opponent(target.opponent, None, run.path, option)
    kept = "" if known is None else known.schedule.opponent
    if _is_model_of(kept, target.opponent):
        target = dataclasses.replace(target, opponent=kept)
    target = checked_opponent(target, config.task)
    agent = dataclasses.replace(agent, target=target)
    check_terms(TargetFiles(run), target, agent.play_against_target())
    return dataclasses.replace(config, agent=agent)


def _is_model_of(path: str, word: str) -> bool:
    """Returns whether ``path`` is a model in the run directory ``word``."""
    return bool(path) and Path(path).parent == RunDirectory(word).models.path.resolve()


def open_opponent(
    config: TargetConfig,
    task: str,
    play: PlayConfig,
    num_threads: int,
    devices: str | None = None,
) -> MatchPlayer:
    """Returns the opponent's player. Blocks while a model is loaded and compiled.

    Args:
        config: The target's config, as returned by ``checked_opponent``.
        task: The task to play.
        play: Search settings of an opponent that is a network.
        num_threads: Number of threads that evaluate concurrently.
        devices: Devices of a tengen model, as for ``open_for_play``. An ONNX graph
            runs on the CPU.

    Raises:
        UsageError: The opponent does not exist, or this host lacks the GPU.
        RunError: The backend cannot load the model.
    """
    word = config.opponent
    if word.startswith(_ONNX):
        graph = _open_graph(Path(word.removeprefix(_ONNX)), task, num_threads)
        return ModelPlayer(name=word, task=task, backend=graph, play=play)
    found = find_player(word)
    if not isinstance(found, ModelDir):
        return found
    # Allow the import of a task in Python only if it is the run's own task. A model for
    # native games may have other rules, planes or boards; ``playing`` sets the task.
    typed = task if is_program(found.meta.task) else None
    player: ModelPlayer = open_model(
        found, word, num_threads=num_threads, play=play, task=typed, devices=devices
    )
    return player.playing(task)


def is_network(word: str) -> bool:
    """Returns whether an opponent is a model, which ``open_opponent`` can run on a GPU.

    Raises:
        UsageError: The opponent does not exist.
    """
    return not word.startswith(_ONNX) and isinstance(find_player(word), ModelDir)


def opponent_digest(config: TargetConfig) -> str:
    """Returns a SHA-256 of an opponent's files, or of its name if it has no files.

    Raises:
        UsageError: The opponent does not exist.
    """
    text = config.opponent
    if text.startswith(_ONNX):
        return file_sha256(Path(text.removeprefix(_ONNX)))
    if text.startswith(KATAGO):
        return file_sha256(Path(text.removeprefix(KATAGO)))
    found = find_player(text)
    if isinstance(found, ModelDir):
        text = " ".join(
            f"{name}={found.meta.sha256[name]}" for name in sorted(found.meta.sha256)
        )
    return hashlib.sha256(text.encode()).hexdigest()


def _open_graph(path: Path, task: str, num_threads: int) -> ForeignGraph:
    signature = board_of(open_game(task)).signature
    try:
        return ForeignGraph(path, signature, num_threads)
    except UsageError as error:
        raise UsageError(f"{_NAME} ({_ONNX}{path}) cannot be used: {error}") from error


def _check_graph(path: Path, task: str) -> None:
    try:
        graph = _open_graph(path, task, 1)
    except RunError as error:
        # Training has not begun yet, so report an unsuitable file as a usage error.
        raise UsageError(f"{_NAME} ({_ONNX}{path}) cannot be used: {error}") from error
    try:
        graph.check_rows()
    except UsageError as error:
        raise UsageError(f"{_NAME} ({_ONNX}{path}) cannot be used: {error}") from error


def _check_game(model: ModelDir, word: str, task: str) -> None:
    game, theirs = open_game(task), model.meta
    check(
        theirs.signature.board is not None,
        _NAME,
        word,
        f"must play {task}, and acts in the environment {theirs.task}; choose another",
    )
    board = theirs.signature.board
    assert board is not None
    wanted = (game.height, game.width, game.num_actions)
    check(
        (board.height, board.width, board.num_actions) == wanted,
        _NAME,
        word,
        f"must play on the board of {task}, and plays {theirs.task}; choose another",
    )


def _check_program(player: EnginePlayer) -> None:
    try:
        program = shlex.split(player.command)[0]
    except (ValueError, IndexError):
        raise UsageError(
            f"{_NAME} ({player.name}) must be a valid command line; check its quotes"
        ) from None
    found = shutil.which(program) or Path(program).exists()
    check(bool(found), _NAME, player.name, f"needs the program {program}; install it")


def _check_answers(player: EnginePlayer, task: str) -> None:
    try:
        check_engine(player, task)
    except (RunError, UsageError) as error:
        raise UsageError(f"{_NAME} ({player.name}) cannot be used: {error}") from error


def check_terms(files: TargetFiles, config: TargetConfig, play: PlayConfig) -> bool:
    """Checks that the settings and the opponent are those of the first games.

    Args:
        files: The target's files, to which ``keep_terms`` wrote the record.
        config: The target's config.
        play: Search settings of the models, as in the config.

    Returns:
        Whether such a record exists; False before the first games.

    Raises:
        UsageError: A setting or a file of the opponent has changed.
        RunError: The record is damaged.
    """
    path = files.folder / _TERMS
    if not path.exists():
        return False
    kept = read_object(path, "terms", schema=TARGET_SCHEMA, advice=_TERMS_ADVICE)
    now = _terms(config, play)
    advice = f"restore it, or remove {files.folder}, and all games are played again"
    theirs = kept.get("target")
    for name, value in now["target"].items():
        before = theirs.get(name) if isinstance(theirs, dict) else None
        if value != before:
            raise UsageError(
                f"agent.target.{name} ({value}) must be {before}, as in the games "
                f"played so far; {advice}"
            )
    if _play_of(kept) != play:
        raise UsageError(
            "search (agent.actor.search or agent.play) must be that of the games "
            f"played so far; {advice}"
        )
    if now["digest"] != kept.get("digest"):
        raise UsageError(
            f"agent.target.opponent ({config.opponent}) must have the same files as in "
            f"the games played so far; {advice}"
        )
    return True


def _play_of(terms: Mapping[str, Any]) -> PlayConfig | None:
    """Returns the search settings of a record; None if they are not valid."""
    try:
        # Settings that are newer than the record have their defaults.
        return from_dict(PlayConfig, terms.get("play", {}))
    except UsageError:
        return None


def keep_terms(files: TargetFiles, config: TargetConfig, play: PlayConfig) -> None:
    """Records the settings and opponent of the first games against the target.

    ``check_terms`` compares later games with this record. If none exists, game records
    of earlier matches in ``RUN/games`` are removed. Concurrent calls are safe.

    Raises:
        UsageError: The record has a different setting or opponent.
        RunError: The record is damaged or cannot be written.
    """
    if not check_terms(files, config, play):
        files.clear_told_games()
        content = {"schema": TARGET_SCHEMA, **_terms(config, play)}
        publish_json(files.folder / _TERMS, content)


def _terms(config: TargetConfig, play: PlayConfig) -> dict[str, Any]:
    target = to_dict(config)
    # ``needs_opponent`` does not affect the games.
    del target["needs_opponent"]
    return {
        "target": target,
        "play": to_dict(play),
        "digest": opponent_digest(config),
    }
