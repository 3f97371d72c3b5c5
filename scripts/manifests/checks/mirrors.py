"""Roles with ``--connect``: they share no disk with their run, and find its learner."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scripts.manifests.checks.ports import (
    has_secret_file,
    listeners,
    port_of,
    ports_of,
    selected_pods,
)
from scripts.manifests.commands import Typed, parsed_commands
from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay, Pod
from scripts.manifests.quantities import parse_quantity

from tengen.mirror import Mirror
from tengen.roles import LaunchConfig, doors

__all__ = ["check_connections", "check_mirrors", "check_refusals", "check_tokens"]

_SERVICES = {
    "selfplay": (doors.RUN_SERVICE,),
    "actor": (doors.STORE, doors.INFERENCE, doors.RUN_SERVICE),
}
"""What a role with --connect speaks to."""
_REFUSED = 2


@dataclass(frozen=True)
class _Connected:
    """A role with --connect, and where it works."""

    typed: Typed
    args: argparse.Namespace
    pod: Pod
    container: Mapping[str, Any]

    @property
    def host(self) -> str:
        return str(self.args.connect).rpartition(":")[0]

    @property
    def port(self) -> int:
        """Of launch.listen; 0 where it is no number."""
        port = str(self.args.connect).rpartition(":")[2]
        return int(port) if port.isdecimal() else 0

    def finding(self, path: str, value: Any, rule: str) -> Finding:
        return self.pod.finding(f"{self.typed.path}, {path}", value, rule)


def check_mirrors(overlay: Overlay) -> Iterator[Finding]:
    """Yields pods with --connect and a disk of runs, or without a place for a mirror.

    A mirror is a folder of the role's own: two pods that shared it would be one.
    """
    for one in _connected(overlay):
        claims = [
            (index, volume["persistentVolumeClaim"]["claimName"])
            for index, volume in enumerate(one.pod.spec.get("volumes", ()))
            if "persistentVolumeClaim" in volume
        ]
        for index, claim in claims:
            where = f"{one.pod.path}.spec.volumes[{index}].persistentVolumeClaim"
            rule = "must not be there beside --connect; use an emptyDir for the mirror"
            yield one.pod.finding(where, claim, rule)
        if claims:
            continue
        run = str(one.args.run)
        empty = _empty_dir(one, run)
        if empty is None:
            rule = (
                "must be a folder below an emptyDir on disk that its container mounts "
                "for writing; correct the path, or the mount"
            )
            yield one.finding("its mirror", run, rule)
            continue
        least = inspect.signature(Mirror).parameters["backlog_bytes"].default
        size = parse_quantity(empty.get("sizeLimit"))
        if size is not None and size <= least:
            rule = f"must be more than the {least} bytes of games that may wait there"
            yield one.finding(
                "sizeLimit of its mirror", empty["sizeLimit"], f"{rule}; raise it"
            )


def check_connections(overlay: Overlay) -> Iterator[Finding]:
    """Yields addresses of --connect at which no Service has what the role asks."""
    for one in _connected(overlay):
        shown = one.args.connect
        service = overlay.documents.get(("Service", one.host))
        if service is None:
            rule = "must have the name of a Service of the overlay; correct it"
            yield one.finding("--connect", shown, rule)
            continue
        needed = [port_of(one.port, name) for name in _SERVICES[one.typed.words[0]]]
        for number in sorted({*needed} - ports_of(service)):
            rule = f"needs port {number} of Service/{one.host}; add it, or correct it"
            yield one.finding("--connect", shown, rule)
        if {*needed} <= ports_of(service) and not _listening(overlay, one):
            rule = (
                f"must have the port of launch.listen of the pod of Service/{one.host}"
            )
            yield one.finding("--connect", shown, f"{rule}; correct one of them")
        yield from _waits(one, service)


def check_tokens(overlay: Overlay) -> Iterator[Finding]:
    """Yields roles with --connect that the learner would not let in.

    The run takes its token from its own file, which a container of the start must fill
    from the secret that the role has; the certificate is known by its fingerprint.
    """
    for one in _connected(overlay):
        variable = f"env {doors.TOKEN_VARIABLE}"
        env = {each["name"]: each for each in one.container.get("env", ())}
        given = env.get(doors.TOKEN_VARIABLE, {})
        secret = given.get("valueFrom", {}).get("secretKeyRef", {})
        for typed, launch in _listening(overlay, one):
            pods = [pod for pod in overlay.pods() if pod.document is typed.document]
            file = f"{_run_of(typed)}/endpoints/token"
            if not secret:
                if "value" not in given:  # else check_secrets tells
                    rule = "must be there, from the run's secret; add it"
                    yield one.finding(variable, "absent", rule)
            elif not any(_has_key(pod, secret) for pod in pods):
                rule = f"must be of a secret that {_name_of(typed)} mounts; correct it"
                shown = f"{secret['name']}, key {secret['key']}"
                yield one.finding(variable, shown, rule)
            elif not any(_is_filled(pod, file) for pod in pods):
                rule = "must be filled from a secret by a container of the start; add"
                where = f"{typed.path}, the token of its run"
                yield overlay.finding(typed.document, where, file, f"{rule} it")
            if launch.certificate_file and one.args.fingerprint is None:
                rule = "must be there, as the learner has a certificate; add it"
                yield one.finding("--fingerprint", "absent", rule)


def check_refusals(overlay: Overlay) -> Iterator[Finding]:
    """Yields Jobs that end where a mirror is refused.

    So is one whose learner does not answer for a minute, as while it begins again.
    """
    for one in _connected(overlay):
        policy = one.pod.document["spec"].get("podFailurePolicy", {})
        for index, rule in enumerate(policy.get("rules", ())):
            codes = rule.get("onExitCodes", {})
            is_in = codes.get("operator") == "In"
            has = _REFUSED in codes.get("values", ())
            if rule["action"] == "FailJob" and codes and is_in == has:
                where = f"spec.podFailurePolicy.rules[{index}]"
                said = (
                    f"must not be of exit code {_REFUSED} beside --connect, which a "
                    f"learner that begins again brings about; remove it"
                )
                yield one.pod.finding(where, rule["action"], said)


def _waits(one: _Connected, service: Mapping[str, Any]) -> Iterator[Finding]:
    """Yields containers of the start that wait for the learner at another port."""
    for index, container in enumerate(one.pod.spec.get("initContainers", ())):
        text = "\n".join(map(str, container.get("command", ())))
        # HOST:PORT, or as Python has it, "HOST", PORT.
        for port in re.findall(rf"{re.escape(one.host)}\W{{1,3}}(\d+)", text):
            if int(port) not in ports_of(service):
                where = f"{one.pod.path}.spec.initContainers[{index}], its command"
                rule = f"must wait for a port of Service/{one.host}; correct it"
                yield one.pod.finding(where, port, rule)
                break


def _connected(overlay: Overlay) -> Iterator[_Connected]:
    for typed, args in parsed_commands(overlay):
        if getattr(args, "connect", None) is None:
            continue
        for pod in overlay.pods():
            for path, container in pod.containers():
                is_its = typed.path.partition(",")[0] == path
                if pod.document is typed.document and is_its:
                    yield _Connected(typed, args, pod, container)


def _empty_dir(one: _Connected, run: str) -> Mapping[str, Any] | None:
    """Returns the emptyDir that a mirror is in; None: it is in none, or is itself one.

    A volume is root's, and a mirror's folder must be its user's.
    """
    volumes = {each["name"]: each for each in one.pod.spec.get("volumes", ())}
    for mount in one.container.get("volumeMounts", ()):
        is_above = run.startswith(mount["mountPath"].rstrip("/") + "/")
        empty = volumes.get(mount["name"], {}).get("emptyDir")
        if is_above and empty is not None and not mount.get("readOnly"):
            found: Mapping[str, Any] = empty
            return None if "medium" in found else found
    return None


def _listening(overlay: Overlay, one: _Connected) -> list[tuple[Typed, LaunchConfig]]:
    """Returns the commands that listen where a role connects to."""
    service = overlay.documents.get(("Service", one.host))
    pods = [] if service is None else selected_pods(overlay, service)
    return [
        (typed, launch)
        for typed, launch, _ in listeners(overlay)
        if any(pod.document is typed.document for pod in pods)
        and launch.listen.rpartition(":")[2] == str(one.port)
    ]


def _run_of(typed: Typed) -> str:
    """Returns the run that a ``train`` makes."""
    words = typed.words
    return words[words.index("--out") + 1] if "--out" in words else "absent"


def _name_of(typed: Typed) -> str:
    return f"{typed.document['kind']}/{typed.document['metadata']['name']}"


def _has_key(pod: Pod, secret: Mapping[str, Any]) -> bool:
    """Returns whether a pod has a volume with that key of that secret."""
    for volume in pod.spec.get("volumes", ()):
        found = volume.get("secret", {})
        items = found.get("items")
        keys = None if items is None else {item["key"] for item in items}
        is_there = keys is None or secret["key"] in keys
        if found.get("secretName") == secret["name"] and is_there:
            return True
    return False


def _is_filled(pod: Pod, file: str) -> bool:
    """Returns whether a container of the start copies a file of a secret there."""
    for one in pod.spec.get("initContainers", ()):
        words = [str(word) for word in one.get("command", ())]
        if file in words and any(has_secret_file(pod, word) for word in words):
            return True
    return False
