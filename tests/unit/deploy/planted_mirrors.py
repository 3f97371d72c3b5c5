"""Errors in jobs-selfplay with mirrors, and in commands of containers."""

from __future__ import annotations

from typing import Any

from tests.unit.deploy.planting import Planted, of

LEARNER = ("Job", "go9-learner")
SELFPLAY = ("Job", "go9-selfplay")
SERVICE = ("Service", "go9-learner")
CLAIM = ("PersistentVolumeClaim", "tengen-runs")
_POD = "spec.template.spec"
_PLAYER = f"{_POD}.containers[0]"
_MAKER = f"{_POD}.initContainers[0]"


def _of_mirrors(
    what: str,
    document: tuple[str, str],
    path: str,
    key: str,
    value: Any,
    found: tuple[str, ...],
) -> Planted:
    components = ("mirrors",)
    return Planted(what, "jobs-selfplay", document, path, key, value, found, components)


MIRRORS = [
    _of_mirrors(
        "a player on the disk of the runs",
        SELFPLAY,
        *(f"{_POD}.volumes", "0"),
        {"name": "mirror", "persistentVolumeClaim": {"claimName": "tengen-runs"}},
        (
            "PersistentVolumeClaim/tengen-runs spec.accessModes (['ReadWriteOnce']) "
            "must have ReadWriteMany, as 5 pods",
            f"Job/go9-selfplay {_POD}.volumes[0].persistentVolumeClaim (tengen-runs) "
            "must not be there beside --connect",
        ),
    ),
    _of_mirrors(
        "a board on the learner's disk",
        ("Deployment", "tengen-tensorboard"),
        *("spec", "replicas", 1),
        of(CLAIM, "spec.accessModes (['ReadWriteOnce']) must have ReadWriteMany, as 2"),
    ),
    _of_mirrors(
        "a mirror that is a volume itself",
        SELFPLAY,
        *(f"{_POD}.containers.0.args", "1", "/mirror"),
        of(SELFPLAY, f"{_PLAYER}, its mirror (/mirror) must be a folder below an emp"),
    ),
    _of_mirrors(
        "a mirror in memory",
        SELFPLAY,
        *(f"{_POD}.volumes.0.emptyDir", "medium", "Memory"),
        of(SELFPLAY, f"{_PLAYER}, its mirror (/mirror/go9) must be a folder below an"),
    ),
    _of_mirrors(
        "a mirror that is read-only",
        SELFPLAY,
        *(f"{_POD}.containers.0.volumeMounts.0", "readOnly", True),
        of(SELFPLAY, f"{_PLAYER}, its mirror (/mirror/go9) must be a folder below an"),
    ),
    _of_mirrors(
        "a mirror without room for games that wait",
        SELFPLAY,
        *(f"{_POD}.volumes.0.emptyDir", "sizeLimit", "1Gi"),
        of(SELFPLAY, f"{_PLAYER}, sizeLimit of its mirror (1Gi) must be more than the"),
    ),
    _of_mirrors(
        "a learner of another name",
        SELFPLAY,
        *(f"{_POD}.containers.0.args", "3", "go9-learn:7070"),
        of(SELFPLAY, f"{_PLAYER}, --connect (go9-learn:7070) must have the name of a"),
    ),
    _of_mirrors(
        "a learner at another port",
        SELFPLAY,
        *(f"{_POD}.containers.0.args", "3", "go9-learner:7072"),
        of(SELFPLAY, f"{_PLAYER}, --connect (go9-learner:7072) needs port 7074 of Ser"),
    ),
    _of_mirrors(
        "a wait for another port",
        SELFPLAY,
        *(f"{_POD}.initContainers.0.command", "4"),
        "until python3 -c 'import socket; "
        'socket.create_connection(("go9-learner", 7070))\'; do sleep 10; done\n',
        of(SELFPLAY, f"{_MAKER}, its command (7070) must wait for a port of Service/g"),
    ),
    _of_mirrors(
        "a service without the run's port",
        SERVICE,
        *("spec.ports.0", "port", 7070),
        (
            f"Job/go9-learner {_MAKER}, launch.listen (0.0.0.0:7070) needs port 7072 o",
            f"Job/go9-selfplay {_PLAYER}, --connect (go9-learner:7070) needs port 7072",
            f"Job/go9-selfplay {_MAKER}, its command (7072) must wait for a port of S",
        ),
    ),
    _of_mirrors(
        "a learner that does not listen",
        LEARNER,
        f"{_POD}.initContainers.0.args",
        *("9", "launch.grows=true"),
        of(SELFPLAY, f"{_PLAYER}, --connect (go9-learner:7070) must have the port of"),
    ),
    _of_mirrors(
        "a listener without a port",
        LEARNER,
        f"{_POD}.initContainers.0.args",
        *("9", "launch.listen=0.0.0.0"),
        (
            f"Job/go9-learner {_MAKER} (tengen train go/9 --out /runs/go9 --games 0 --",
            f"Job/go9-selfplay {_PLAYER}, --connect (go9-learner:7070) must have the p",
        ),
    ),
    _of_mirrors(
        "a pod of another port than its learner's",
        LEARNER,
        *(f"{_POD}.containers.0.ports.0", "containerPort", 7073),
        of(LEARNER, f"{_MAKER}, launch.listen (0.0.0.0:7070) needs port 7072 of the p"),
    ),
    _of_mirrors(
        "a listener that no service selects",
        SERVICE,
        "spec.selector",
        *("app.kubernetes.io/component", "tensorboard"),
        (
            "Service/go9-learner spec.ports[0].targetPort (run) must be a port of the",
            f"Job/go9-learner {_MAKER}, launch.listen (0.0.0.0:7070) must be of a pod",
            f"Job/go9-selfplay {_PLAYER}, --connect (go9-learner:7070) must have the p",
        ),
    ),
    _of_mirrors(
        "a certificate that nobody mounts",
        LEARNER,
        f"{_POD}.initContainers.0.args",
        *("11", "launch.certificate_file=/etc/tls.crt"),
        of(LEARNER, f"{_MAKER}, launch.certificate_file (/etc/tls.crt) must be in a s"),
    ),
    _of_mirrors(
        "a player without a token",
        SELFPLAY,
        *(f"{_POD}.containers.0.env", "0", None),
        of(SELFPLAY, f"{_PLAYER}, env TENGEN_RUN_TOKEN (absent) must be there, from"),
    ),
    _of_mirrors(
        "a token of another secret",
        SELFPLAY,
        *(f"{_POD}.containers.0.env.0.valueFrom.secretKeyRef", "name", "atari-tls"),
        of(SELFPLAY, f"{_PLAYER}, env TENGEN_RUN_TOKEN (atari-tls, key token) must be"),
    ),
    _of_mirrors(
        "a token of a secret that is not there",
        SELFPLAY,
        f"{_POD}.containers.0.env.0.valueFrom.secretKeyRef",
        *("name", "go9-runs"),
        (
            f"Job/go9-selfplay {_PLAYER}.env[0].valueFrom.secretKeyRef.name (go9-runs)",
            f"Job/go9-selfplay {_PLAYER}, env TENGEN_RUN_TOKEN (go9-runs, key token)",
        ),
    ),
    _of_mirrors(
        "a run with a token of its own",
        LEARNER,
        *(f"{_POD}.initContainers.1.command", "6", "/runs/go19/endpoints/token"),
        of(LEARNER, f"{_MAKER}, the token of its run (/runs/go9/endpoints/token) must"),
    ),
    _of_mirrors(
        "a fingerprint of no variable",
        SELFPLAY,
        *(f"{_POD}.containers.0.env.1", "name", "FINGERPRINT"),
        of(SELFPLAY, f"{_PLAYER}.args[5] ($(RUN_FINGERPRINT)) must be a variable of"),
    ),
    _of_mirrors(
        "a player who trusts any certificate",
        SELFPLAY,
        f"{_POD}.containers.0",
        *("args", ["selfplay", "/mirror/go9", "--connect", "go9-learner:7070"]),
        of(SELFPLAY, f"{_PLAYER}, --fingerprint (absent) must be there, as the learn"),
    ),
    _of_mirrors(
        "a Job that ends where a mirror is refused",
        SELFPLAY,
        "spec.podFailurePolicy.rules",
        "1",
        {
            "action": "FailJob",
            "onExitCodes": {
                "containerName": "selfplay",
                "operator": "NotIn",
                "values": [0, 1, 130],
            },
        },
        of(SELFPLAY, "spec.podFailurePolicy.rules[1] (FailJob) must not be of exit co"),
    ),
    Planted(
        *("an option that is misspelt", "jobs-selfplay", LEARNER),
        *(f"{_POD}.containers.0", "args", ["learn", "/runs/go9", "--thread", "8"]),
        of(LEARNER, f"{_PLAYER} (tengen learn /runs/go9 --thread 8) must be a comman"),
    ),
    Planted(
        *("a command that is not there", "jobs-selfplay", LEARNER),
        *(f"{_POD}.containers.2.args", "0", "gates"),
        of(LEARNER, f"{_POD}.containers[2] (tengen gates /runs/go9) must be a command"),
    ),
]
