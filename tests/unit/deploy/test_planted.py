"""Errors that are planted in good overlays: each is found, by name, and alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scripts.check_manifests import findings
from scripts.manifests.checks import CHECKS

from tests.unit.deploy.overlays import rendered
from tests.unit.deploy.planted_mirrors import MIRRORS
from tests.unit.deploy.planted_mpi import MPI
from tests.unit.deploy.planted_network import NETWORK
from tests.unit.deploy.planted_processes import PROCESSES
from tests.unit.deploy.planting import Planted, changed, of, plant

GO9 = ("RayJob", "go9")
ATARI = ("RayCluster", "atari")
TRAIN = ("RayJob", "atari-train")
LEARNER = ("Job", "go9-learner")
SELFPLAY = ("Job", "go9-selfplay")
BOARD = ("Deployment", "tengen-tensorboard")
_HEAD = "spec.rayClusterSpec.headGroupSpec"
_GROUPS = "spec.rayClusterSpec.workerGroupSpecs"
_POD = "spec.template.spec"


PLANTED = [
    Planted(
        *("a field that is misspelt", "rayjob-go9", GO9, _HEAD, "rayStartParam"),
        {"num-cpus": "0"},
        of(GO9, f"{_HEAD}.rayStartParam ({{'num-cpus': '0'}}) must be a field"),
    ),
    Planted(
        *("one in a pod of Ray", "rayjob-go9", GO9),
        "spec.rayClusterSpec.headGroupSpec.template.spec.volumes.2.emptyDir",
        "medum",
        "Memory",
        of(GO9, f"{_HEAD}.template.spec.volumes[2].emptyDir.medum (Memory) must be a"),
    ),
    Planted(
        *("one in a Job", "jobs-selfplay", SELFPLAY, "spec", "paralelism"),
        4,
        of(SELFPLAY, "spec.paralelism (4) must be a field"),
    ),
    Planted(
        *("a number in quotes", "raycluster-atari", ATARI),
        *("spec.workerGroupSpecs.1", "maxReplicas", "6"),
        of(ATARI, "spec.workerGroupSpecs[1].maxReplicas (6) must fit the schema"),
    ),
    Planted(
        *("a field that lacks", "rayjob-go9", GO9, "spec", "entrypoint", None),
        of(GO9, "spec.entrypoint (absent) must be there"),
    ),
    Planted(
        *("a kind of no schema", "rayjob-go9", GO9, "", "apiVersion"),
        "ray.io/v1alpha1",
        of(GO9, "apiVersion (ray.io/v1alpha1) must be a kind that is known"),
    ),
    Planted(
        *("a name in capitals", "jobs-selfplay", LEARNER),
        *(f"{_POD}.containers.0", "name", "Learn"),
        of(LEARNER, f"{_POD}.containers[0].name (Learn) must be lower-case"),
    ),
    Planted(
        *("a name too long for KubeRay", "rayjob-go9", GO9, "metadata", "name"),
        "a" * 48,
        of(("RayJob", "a" * 48), f"metadata.name ({'a' * 48}) must have 47"),
    ),
    Planted(
        *("a mount of no volume", "jobs-selfplay", SELFPLAY),
        *(f"{_POD}.containers.0.volumeMounts.1", "name", "scrach"),
        of(SELFPLAY, f"{_POD}.containers[0].volumeMounts[1].name (scrach) must be a v"),
    ),
    Planted(
        *("a claim that is not there", "rayjob-go9", GO9),
        f"{_HEAD}.template.spec.volumes.0.persistentVolumeClaim",
        "claimName",
        "tengen-run",
        of(
            GO9,
            f"{_HEAD}.template.spec.volumes[0].persistentVolumeClaim.claimName "
            "(tengen-run) must be a PersistentVolumeClaim",
        ),
    ),
    Planted(
        *("a map that is not there", "jobs-selfplay", BOARD),
        *(f"{_POD}.containers.0.envFrom.0.configMapRef", "name", "environment"),
        of(
            BOARD,
            f"{_POD}.containers[0].envFrom[0].configMapRef.name (environment) must be "
            "a ConfigMap",
        ),
    ),
    Planted(
        *("a secret that nobody is told of", "jobs-selfplay", SELFPLAY),
        f"{_POD}.containers.0",
        "env",
        [
            {
                "name": "TENGEN_RUN_TOKEN",
                "valueFrom": {"secretKeyRef": {"name": "run-token", "key": "token"}},
            }
        ],
        of(
            SELFPLAY,
            f"{_POD}.containers[0].env[0].valueFrom.secretKeyRef.name (run-token) must "
            "be made by the overlay, or stand in docs/howto/machines/deploy.md",
        ),
    ),
    Planted(
        *("a token in a manifest", "jobs-selfplay", SELFPLAY, f"{_POD}.containers.0"),
        "env",
        [{"name": "TENGEN_RUN_TOKEN", "value": "3f9a"}],
        of(
            SELFPLAY,
            f"{_POD}.containers[0].env[0].value (not shown) must come from a secret",
        ),
    ),
    Planted(
        *("no account", "jobs-selfplay", SELFPLAY, _POD, "serviceAccountName"),
        None,
        of(SELFPLAY, f"{_POD}.serviceAccountName (absent) must be a ServiceAccount"),
    ),
    Planted(
        *("another tag", "jobs-selfplay", SELFPLAY, f"{_POD}.containers.0", "image"),
        "registry.example.com/tengen:latest",
        of(
            SELFPLAY,
            f"{_POD}.containers[0].image (registry.example.com/tengen:latest) must "
            "have the build's tag",
        ),
    ),
    Planted(
        *("another Ray", "raycluster-atari", ATARI, "spec", "rayVersion", "2.59.0"),
        of(ATARI, "spec.rayVersion (2.59.0) must be the Ray of constraints.txt"),
    ),
    Planted(
        *("no limit", "jobs-selfplay", SELFPLAY),
        *(f"{_POD}.containers.0.resources.limits", "cpu", None),
        of(SELFPLAY, f"{_POD}.containers[0].resources.limits.cpu (absent) must be a q"),
    ),
    Planted(
        *("a request above its limit", "jobs-selfplay", SELFPLAY),
        *(f"{_POD}.containers.0.resources.requests", "memory", "7Gi"),
        of(
            SELFPLAY,
            f"{_POD}.containers[0].resources.requests.memory (7Gi) must be at most its",
        ),
    ),
    Planted(
        *("memory that is a disk", "jobs-selfplay", SELFPLAY),
        *(f"{_POD}.volumes.2.emptyDir", "medium", None),
        of(SELFPLAY, f"{_POD}.containers[0].volumeMounts (['/dev/shm', '/runs', '/tm"),
    ),
    Planted(
        *("more shared memory than memory", "jobs-selfplay", SELFPLAY),
        *(f"{_POD}.volumes.2.emptyDir", "sizeLimit", "6Gi"),
        of(SELFPLAY, f"{_POD}.containers[0], its /dev/shm (6Gi) must be less than"),
    ),
    Planted(
        *("memory without end", "jobs-selfplay", SELFPLAY),
        *(f"{_POD}.volumes.2.emptyDir", "sizeLimit", None),
        of(SELFPLAY, f"{_POD}.volumes[2].emptyDir.sizeLimit (absent) must be there"),
    ),
    Planted(
        *("a root that can be written", "jobs-selfplay", BOARD),
        *(f"{_POD}.containers.0.securityContext", "readOnlyRootFilesystem", None),
        of(
            BOARD,
            f"{_POD}.containers[0].securityContext.readOnlyRootFilesystem (absent) "
            "must be true",
        ),
    ),
    Planted(
        *("another user than the image's", "jobs-selfplay", BOARD),
        *(f"{_POD}.securityContext", "runAsUser", 1000),
        of(BOARD, f"{_POD}.securityContext.runAsUser (1000) must be 10001"),
    ),
    Planted(
        *("no probe", "jobs-selfplay", BOARD, f"{_POD}.containers.0"),
        *("readinessProbe", None),
        of(BOARD, f"{_POD}.containers[0].readinessProbe (absent) must be there"),
    ),
    Planted(
        *("no time to save", "jobs-selfplay", LEARNER, _POD),
        *("terminationGracePeriodSeconds", 30),
        of(LEARNER, f"{_POD}.terminationGracePeriodSeconds (30) must be more than"),
    ),
    Planted(
        *("a Job without end", "jobs-selfplay", LEARNER, "spec"),
        *("activeDeadlineSeconds", None),
        of(LEARNER, "spec.activeDeadlineSeconds (absent) must be there"),
    ),
    Planted(
        *("a policy that needs Never", "jobs-selfplay", SELFPLAY, _POD),
        *("restartPolicy", "OnFailure"),
        of(SELFPLAY, f"{_POD}.restartPolicy (OnFailure) must be Never"),
    ),
    Planted(
        *("a cluster that stays", "rayjob-go9", GO9, "spec"),
        *("shutdownAfterJobFinishes", False),
        of(GO9, "spec.shutdownAfterJobFinishes (False) must be true"),
    ),
    Planted(
        *("more replicas than may be", "raycluster-atari", ATARI),
        *("spec.workerGroupSpecs.1", "replicas", 7),
        of(ATARI, "spec.workerGroupSpecs[1].replicas (7) must be 1 to 6"),
    ),
    Planted(
        *("a head with cores", "rayjob-go9", GO9, f"{_HEAD}.rayStartParams"),
        *("num-cpus", "4"),
        of(GO9, f'{_HEAD}.rayStartParams.num-cpus (4) must be "0"'),
    ),
    Planted(
        *("more cores than the pod's", "rayjob-go9", GO9),
        *(f"{_GROUPS}.1.rayStartParams", "num-cpus", "32"),
        of(GO9, f"{_GROUPS}[1].template, num-cpus of its group (32) must be at most"),
    ),
    Planted(
        *("cores that are no number", "rayjob-go9", GO9),
        *(f"{_GROUPS}.0.rayStartParams", "num-gpus", "one"),
        (
            f"RayJob/go9 {_GROUPS}[0].template, num-gpus of its group (one) must be a",
            "RayJob/go9 spec.entrypoint, its roles (5 processes on 3 pods) must fit "
            "the pods of its start: launch.roles.learn (4 cores, 1 GPUs) has no room",
        ),
    ),
    Planted(
        *("no room for self-play", "rayjob-go9", GO9),
        *(f"{_GROUPS}.1.rayStartParams", "num-cpus", "15"),
        of(
            GO9,
            "spec.entrypoint, its roles (5 processes on 3 pods) must fit the pods of "
            "its start: launch.roles.selfplay (16 cores, 0 GPUs) has no room",
        ),
    ),
    Planted(
        *("fewer pods than actors need", "raycluster-atari", ATARI),
        *("spec.workerGroupSpecs.1", "maxReplicas", 3),
        of(
            TRAIN,
            "spec.entrypoint, its roles (34 processes on 5 pods) must fit the pods "
            "that there may be: launch.roles.actor (1 cores, 0 GPUs) has no room",
        ),
    ),
    Planted(
        *("a cluster that does not grow", "raycluster-atari", ATARI, "spec"),
        *("enableInTreeAutoscaling", False),
        of(TRAIN, "spec.entrypoint, launch.grows (true) must be left out where the cl"),
    ),
    Planted(
        *("a job for no cluster", "raycluster-atari", TRAIN, "spec.clusterSelector"),
        *("ray.io/cluster", "atar"),
        of(TRAIN, "spec.clusterSelector (atar) must name a RayCluster"),
    ),
    Planted(
        *("no label of the queue", "rayjob-go9", GO9, "metadata.labels"),
        *("volcano.sh/queue-name", None),
        of(GO9, "metadata.labels[volcano.sh/queue-name] (absent) must name the Queue"),
        ("queue-volcano",),
    ),
    Planted(
        *("a queue that is not there", "jobs-selfplay", SELFPLAY, "metadata.labels"),
        *("kueue.x-k8s.io/queue-name", "other"),
        of(
            SELFPLAY,
            "metadata.labels[kueue.x-k8s.io/queue-name] (other) must be a LocalQueue",
        ),
        ("queue-kueue",),
    ),
    Planted(
        *("another scheduler", "jobs-selfplay", SELFPLAY, _POD),
        *("schedulerName", None),
        of(SELFPLAY, f"{_POD}.schedulerName (absent) must be volcano"),
        ("queue-volcano",),
    ),
    Planted(
        *("a queue that scales itself", "raycluster-atari", ATARI, "metadata.labels"),
        *("kueue.x-k8s.io/queue-name", "tengen"),
        (
            "RayCluster/atari metadata.labels[kueue.x-k8s.io/queue-name] (tengen) must",
            "RayCluster/atari spec.enableInTreeAutoscaling (true) must be false in a q",
        ),
    ),
    Planted(
        *("a queue too small", "rayjob-go9", ("Queue", "tengen"), "spec.capability"),
        *("cpu", "32"),
        of(GO9, "cpu of all its pods (33) must fit Queue/tengen, which has 32"),
        ("queue-volcano",),
    ),
    Planted(
        *("a service of no pod", "jobs-selfplay", ("Service", "tengen-tensorboard")),
        *("spec.selector", "app.kubernetes.io/component", "board"),
        of(
            ("Service", "tengen-tensorboard"),
            "spec.selector ({'app.kubernetes.io/part-of': 'tengen', "
            "'app.kubernetes.io/component'",
        ),
    ),
    Planted(
        *("a service of another port", "jobs-selfplay"),
        ("Service", "tengen-tensorboard"),
        *("spec.ports.0", "targetPort", 6007),
        of(
            ("Service", "tengen-tensorboard"),
            "spec.ports[0].targetPort (6007) must be a port of the pod's containers",
        ),
    ),
    Planted(
        *("a program at another port", "jobs-selfplay", BOARD),
        *(f"{_POD}.containers.0.command", "5", "--port=6007"),
        of(BOARD, f"{_POD}.containers[0], its command (--port=6007) must be a port of"),
    ),
    Planted(
        *("a listener at another port", "raycluster-atari"),
        *(("Service", "atari-learner"), "spec.ports.1"),
        *("port", 7072),
        (
            "Service/atari-learner spec.ports[1].port (7072) must be the pod's own, 70",
            "RayJob/atari-train spec.entrypoint, launch.listen (atari-learner:7070) ne",
        ),
    ),
    Planted(
        *("a listener behind an address", "raycluster-atari"),
        *(("Service", "atari-learner"), "spec", "clusterIP", None),
        of(TRAIN, "spec.entrypoint, launch.listen (atari-learner:7070) must have the"),
    ),
    Planted(
        *("a disk that is read-only", "jobs-selfplay", SELFPLAY),
        *(f"{_POD}.containers.0.volumeMounts.0", "readOnly", True),
        of(
            SELFPLAY,
            f"{_POD}.containers[0], its run directory (/runs/go9, spec.template) must "
            "be below a claim",
        ),
    ),
    Planted(
        *("another mount than the command's", "jobs-selfplay", SELFPLAY),
        *(f"{_POD}.containers.0.volumeMounts.0", "mountPath", "/data"),
        of(
            SELFPLAY,
            f"{_POD}.containers[0], its run directory (/runs/go9, spec.template) must "
            "be below a claim",
        ),
    ),
    Planted(
        *("another run than the others'", "jobs-selfplay", SELFPLAY),
        *(f"{_POD}.containers.0.args", "1", "/runs/go19"),
        of(
            SELFPLAY,
            f"{_POD}.containers[0], its run directory (/runs/go19) must be the run of",
        ),
    ),
    Planted(
        *("an end before the command's", "rayjob-go9", GO9, "spec"),
        *("activeDeadlineSeconds", 36000),
        of(GO9, "spec.activeDeadlineSeconds (36000) must be more than the command's"),
    ),
    *MIRRORS,
    *MPI,
    *NETWORK,
    *PROCESSES,
]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.what)
def test_it_is_found_alone(planted: Planted) -> None:
    overlay = plant(planted)
    found = [one.line("") for one in findings(overlay)]
    assert len(found) == len(planted.found), found
    for line, expected in zip(found, planted.found, strict=True):
        assert line.startswith(f": {expected}")
        assert "; " in line
        assert "\n" not in line


def test_two_queues_are_one_too_many() -> None:
    overlay = rendered("jobs-selfplay", "queue-kueue", "queue-volcano")
    (found,) = findings(overlay)
    assert found.line("").startswith(
        ": Queue/tengen kind (Queue) must be the one queue"
    )


def test_every_check_finds_something() -> None:
    """A check that nothing above makes speak would be one that cannot fail."""
    speaking: set[Callable[..., Any]] = set()
    for planted in PLANTED:
        overlay = plant(planted)
        for check in CHECKS:
            try:
                if next(iter(check(overlay)), None) is not None:
                    speaking.add(check)
            except (KeyError, TypeError):
                continue  # of an object that its schema refuses
    overlay = rendered("rayjob-go9")
    changed(overlay, GO9, "--minutes", "--minute")
    speaking |= {check for check in CHECKS if next(iter(check(overlay)), None)}
    assert {check.__name__ for check in CHECKS} == {one.__name__ for one in speaking}
