"""Ports: of services, containers, and what a command line has a role listen on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from scripts.manifests.commands import (
    container_commands,
    entrypoint_commands,
    parse,
    settings_of,
)
from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay, Pod

from tengen.errors import UsageError

__all__ = ["check_listener", "check_services"]


def check_services(overlay: Overlay) -> Iterator[Finding]:
    """Yields services that reach no pod or no port, and programs at another one."""
    for one in overlay.of_kind("Service"):
        pods = _selected(overlay, one)
        if not pods:
            rule = "must be labels of a pod of the overlay; correct it"
            found = one["spec"].get("selector", {})
            yield overlay.finding(one, "spec.selector", found, rule)
            continue
        for index, port in enumerate(one["spec"].get("ports", ())):
            target = port.get("targetPort", port["port"])
            path = f"spec.ports[{index}]"
            number = _number(pods, target)
            if number is None:
                rule = "must be a port of the pod's containers; correct it"
                yield overlay.finding(one, f"{path}.targetPort", target, rule)
            elif number != port["port"] and one["spec"].get("clusterIP") == "None":
                # Such a service is a name of the pod: it moves no port.
                rule = f"must be the pod's own, {number}; correct it"
                yield overlay.finding(one, f"{path}.port", port["port"], rule)
    for pod in overlay.pods():
        for path, container in pod.containers():
            words = [*container.get("command", ()), *container.get("args", ())]
            ports = {one["containerPort"] for one in container.get("ports", ())}
            for word in words:
                match = re.fullmatch(r"--port=(\d+)", str(word))
                if match and int(match[1]) not in ports:
                    rule = (
                        f"must be a port of its container, {sorted(ports)}; correct it"
                    )
                    yield pod.finding(f"{path}, its command", word, rule)


def check_listener(overlay: Overlay) -> Iterator[Finding]:
    """Yields addresses that roles are to listen on and that are not their pod's.

    The learner's table is at the port, inference at the next; both by TLS, whose files
    a secret of the pod must have.
    """
    for typed in (*entrypoint_commands(overlay), *container_commands(overlay)):
        try:
            settings = settings_of(parse(typed))
        except UsageError:
            continue  # check_commands tells
        listen = settings.get("launch.listen")
        if listen is None:
            continue
        host, _, port = listen.rpartition(":")
        where = f"{typed.path}, launch.listen"
        if not port.isdecimal():
            rule = "must be HOST:PORT; correct it"
            yield overlay.finding(typed.document, where, listen, rule)
            continue
        service = overlay.documents.get(("Service", host))
        if service is None or service["spec"].get("clusterIP") != "None":
            rule = "must have the name of a Service with clusterIP None; correct it"
            yield overlay.finding(typed.document, where, listen, rule)
            continue
        pods = _selected(overlay, service)
        for number in (int(port), int(port) + 1):
            if number not in {one["port"] for one in service["spec"].get("ports", ())}:
                rule = f"needs port {number} of Service/{host}; add it, or correct it"
                yield overlay.finding(typed.document, where, listen, rule)
            if pods and _number(pods, number) is None:
                rule = f"needs port {number} of the pod of Service/{host}; add it"
                yield overlay.finding(typed.document, where, listen, rule)
        for name in ("launch.certificate_file", "launch.key_file"):
            file = settings.get(name, "absent")
            if not any(_has_secret_file(pod, file) for pod in pods):
                rule = f"must be in a secret that the pod of Service/{host} mounts"
                path = f"{typed.path}, {name}"
                yield overlay.finding(typed.document, path, file, f"{rule}; mount it")


def _selected(overlay: Overlay, service: Mapping[str, Any]) -> list[Pod]:
    wanted = service["spec"].get("selector", {}).items()
    return [
        pod
        for pod in overlay.pods()
        if wanted
        and wanted <= pod.template.get("metadata", {}).get("labels", {}).items()
    ]


def _number(pods: list[Pod], target: object) -> int | None:
    """Returns the number of a container's port by name or number; None: no such one."""
    for pod in pods:
        for _, container in pod.containers():
            for port in container.get("ports", ()):
                if target in (port.get("name"), port["containerPort"]):
                    return int(port["containerPort"])
    return None


def _has_secret_file(pod: Pod, file: str) -> bool:
    volumes = {one["name"]: one for one in pod.spec.get("volumes", ())}
    return any(
        file.startswith(mount["mountPath"].rstrip("/") + "/")
        and "secret" in volumes.get(mount["name"], {})
        for _, container in pod.containers()
        for mount in container.get("volumeMounts", ())
    )
