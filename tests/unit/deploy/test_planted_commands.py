"""Commands in manifests that tengen refuses: each is found, with tengen's words."""

from __future__ import annotations

import pytest
from scripts.check_manifests import findings

from tests.unit.deploy.overlays import place, rendered
from tests.unit.deploy.planting import changed

GO9 = ("RayJob", "go9")
TRAIN = ("RayJob", "atari-train")
_GROUPS = "spec.rayClusterSpec.workerGroupSpecs"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("--minutes", "--minute", 'option (--minute) is not known; did you mean "--mi'),
        ("--launch ray", "--launch rey", "invalid choice: 'rey'"),
        ("--launch ray", "--launch mpi --agent dqn", "agent (dqn) does not train go/9"),
        (
            "gate.num_cpus=1",
            "gate.num_cpus=one",
            'gate.num_cpus ("one") must be a whol',
        ),
        ("roles.rate", "roles.rating", "launch.roles (rating) is not a role of this r"),
        (
            "600",
            "600 --set agent.nope=3",
            "agent.nope (3) is not a known key; known: a",
        ),
        (
            "600",
            "600 --set net.num_blocks=banana",
            'net.num_blocks ("banana") must be a',
        ),
        ("600", "600 --set net.num_blocks=0", "num_blocks (0) must be"),
        ("600", "600 --frames 5", "frames (5) must be left out where games are played"),
        ("go/9 --launch", "go/99 --launch", "task (go/99) must be go/9 or go/9x13"),
        ("tengen train", "tengen trane", "command (trane) is not known"),
        ("/runs/go9", "/data/go9", "its run directory (/data/go9, spec.rayClusterSpec"),
    ],
)
def test_a_command_that_is_wrong(old: str, new: str, expected: str) -> None:
    overlay = rendered("rayjob-go9")
    changed(overlay, GO9, old, new)
    found = [one.line("") for one in findings(overlay)]
    # The run directory is that of the head and of both groups.
    assert len(found) == (3 if "directory" in expected else 1)
    assert all(expected in line for line in found)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("--agent vtrace", "--agent vtracee", "agent (vtracee) is not known; did you"),
        (
            "--agent vtrace",
            "--agent vtrace --set agent.actor.num_envs=0",
            "agent.actor.num_envs (0) must be 1 to 4096",
        ),
        (
            "--set launch.grows=true",
            "",
            "its roles (34 processes on 3 pods) must fit the pods of its start: "
            "launch.roles.actor (1 cores, 0 GPUs) has no room",
        ),
        (
            "launch.roles.learn.num_cpus=4",
            "launch.roles.learn.num_cpus=5",
            "must fit the pods that there may be: launch.roles.learn, "
            "launch.roles.inference (9 cores, 2 GPUs) have no room together on one",
        ),
        (
            "--set launch.grows=true",
            "--set launch.grows=true --set launch.roles.inference.count=2",
            "launch.listen (atari-learner:7070) needs port 7074 of Service/atari-lear",
        ),
    ],
)
def test_a_command_of_environments_that_is_wrong(
    old: str, new: str, expected: str
) -> None:
    overlay = rendered("raycluster-atari")
    changed(overlay, TRAIN, old, new)
    found = [one.line("") for one in findings(overlay)]
    assert any(expected in line for line in found), found


def test_a_device_that_no_pod_has() -> None:
    overlay = rendered("rayjob-go9")
    changed(
        overlay,
        GO9,
        "--set launch.roles.learn.num_gpus=1",
        "--set learner.device=cuda:0",
    )
    del place(overlay.documents[GO9], f"{_GROUPS}.0.rayStartParams")["num-gpus"]
    (found,) = findings(overlay)
    assert "learner.device (cuda:0) is on no host of the cluster" in found.line("")
