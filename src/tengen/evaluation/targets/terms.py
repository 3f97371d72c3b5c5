"""What all records of a run's target hold for, fixed from its first game on."""

from __future__ import annotations

from typing import Any

from tengen.config import to_dict
from tengen.errors import UsageError
from tengen.evaluation.targets.config import TargetConfig
from tengen.evaluation.targets.opponent import opponent_digest
from tengen.evaluation.targets.records import TARGET_SCHEMA, TargetFiles
from tengen.run import publish_json, read_object
from tengen.search import PlayConfig

__all__ = ["check_terms", "keep_terms"]

_FILE = "terms.json"
_ADVICE = "remove the folder, and all models are played anew"


def check_terms(files: TargetFiles, config: TargetConfig, play: PlayConfig) -> bool:
    """Checks that games to come are of one kind with those that were played.

    Args:
        files: Has the terms, once games were played.
        config: The target.
        play: How models search, as the config names it.

    Returns:
        Whether any are fixed yet.

    Raises:
        UsageError: A setting is another one, or the opponent's files are.
        RunError: The file is damaged.
    """
    path = files.folder / _FILE
    if not path.exists():
        return False
    kept = read_object(path, "terms", schema=TARGET_SCHEMA, advice=_ADVICE)
    now = _terms(config, play)
    advice = f"leave it as it was; or remove {files.folder}, and all are played anew"
    theirs = kept.get("target")
    for name, value in now["target"].items():
        before = theirs.get(name) if isinstance(theirs, dict) else None
        if value != before:
            raise UsageError(
                f"agent.target.{name} ({value}) must be {before}, by which models "
                f"were played; {advice}"
            )
    if now["play"] != kept.get("play"):
        raise UsageError(
            f"search of models (agent.actor.search or agent.play) must be that by "
            f"which models were played; {advice}"
        )
    if now["digest"] != kept.get("digest"):
        raise UsageError(
            f"agent.target.opponent ({config.opponent}) must have the files against "
            f"which models were played; {advice}"
        )
    return True


def keep_terms(files: TargetFiles, config: TargetConfig, play: PlayConfig) -> None:
    """Fixes the terms; see ``check_terms``. Any number of processes may, at once.

    Games in ``RUN/games`` go first: they are those of terms that were removed.

    Raises:
        UsageError: Others are fixed.
        RunError: The file is damaged, or the disk refuses.
    """
    if not check_terms(files, config, play):
        files.clear_told_games()
        content = {"schema": TARGET_SCHEMA, **_terms(config, play)}
        publish_json(files.folder / _FILE, content)


def _terms(config: TargetConfig, play: PlayConfig) -> dict[str, Any]:
    target = to_dict(config)
    # It says nothing of the games.
    del target["needs_opponent"]
    return {
        "target": target,
        "play": to_dict(play),
        "digest": opponent_digest(config),
    }
