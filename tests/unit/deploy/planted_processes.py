"""Roles that are missing, or too many, in jobs-selfplay."""

from __future__ import annotations

from typing import Any

from tests.unit.deploy.planting import Planted

LEARNER = ("Job", "go9-learner")
SELFPLAY = ("Job", "go9-selfplay")
_POD = "spec.template.spec"
_MAKER = f"Job/go9-learner {_POD}.initContainers[0]"
_LEARNER = f"Job/go9-learner {_POD}.containers"
_PLAYER = f"Job/go9-selfplay {_POD}.containers[0]"
_PLAYS = f"{_POD}.containers.0"


def _of_jobs(
    what: str,
    document: tuple[str, str],
    path: str,
    key: str,
    value: Any,
    *found: str,
) -> Planted:
    return Planted(what, "jobs-selfplay", document, path, key, value, found)


PROCESSES = [
    _of_jobs(
        *("more pods than writers", SELFPLAY, "spec", "parallelism", 1025),
        f"{_PLAYER}, processes of tengen selfplay (1025) must be 1 to 1024, those",
    ),
    _of_jobs(
        *("nobody who plays", SELFPLAY, "spec", "parallelism", 0),
        f"{_PLAYER}, processes of tengen selfplay (0) must be 1 to 1024, those",
    ),
    _of_jobs(
        *("a learner without a gate", LEARNER, f"{_POD}.containers", "2", None),
        f"{_MAKER}, processes of tengen gate (0) must be 1, those that the run",
    ),
    _of_jobs(
        *("two learners", LEARNER, "spec", "parallelism", 2),
        f"{_LEARNER}[0], processes of tengen learn (2) must be 1, those",
        f"{_LEARNER}[1], processes of tengen export (2) must be 1, those",
        f"{_LEARNER}[2], processes of tengen gate (2) must be 1, those",
    ),
    _of_jobs(
        *("players who learn", SELFPLAY, _PLAYS, "args", ["learn", "/runs/go9"]),
        f"{_MAKER}, processes of tengen selfplay (0) must be 1 to 1024, those",
        f"{_PLAYER}, processes of tengen learn (5) must be 1, those that the run",
    ),
    _of_jobs(
        *("a role of another run", SELFPLAY, _PLAYS, "args", ["shuffle", "/runs/go9"]),
        f"{_MAKER}, processes of tengen selfplay (0) must be 1 to 1024, those",
        f"{_PLAYER}, processes of tengen shuffle (4) must be 0, those that the run",
    ),
    _of_jobs(
        *("a follower of none", LEARNER, _PLAYS, "args"),
        ["learn", "/runs/go9", "--index", "1"],
        f"{_MAKER}, processes of tengen learn (0) must be 1, those",
        f"{_LEARNER}[0], processes of tengen learn --index 1 (1) must be 0, those",
    ),
    _of_jobs(
        *("a learner beside one that trains", LEARNER),
        *(f"{_POD}.initContainers.0", "args"),
        ["train", "go/9", "--out", "/runs/go9", "--minutes", "600"],
        f"{_LEARNER}[0], processes of tengen learn (1) must be 0, those",
        f"{_LEARNER}[1], processes of tengen export (1) must be 0, those",
        f"{_LEARNER}[2], processes of tengen gate (1) must be 0, those",
    ),
    _of_jobs(
        *("a run that nobody makes", LEARNER, f"{_POD}.initContainers.0", "args"),
        ["status", "/runs/go9"],
        f"{_LEARNER}[0] (learn) must be of a run that tengen train makes in the",
    ),
    _of_jobs(
        *("a run that two make", SELFPLAY, _PLAYS, "args"),
        ["train", "go/9", "--out", "/runs/go9", "--games", "0"],
        f"{_PLAYER} (tengen train go/9 --out /runs/go9 --games 0) must be the only",
        f"{_MAKER}, processes of tengen selfplay (0) must be 1 to 1024, those",
    ),
    _of_jobs(
        *("another task", LEARNER, f"{_POD}.initContainers.0.args", "1", "go/99"),
        f"{_MAKER} (tengen train go/99 --out /runs/go9 --games 0 --minutes 600) must",
    ),
]
