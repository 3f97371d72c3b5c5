"""Ports: of services, containers, and what a command line has a role listen on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scripts.manifests.commands import Typed, config_of, parsed_commands
from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay, Pod

from tengen.roles import LaunchConfig, doors

__all__ = [
    "check_listener",
    "check_services",
    "has_secret_file",
    "listeners",
    "port_of",
    "ports_of",
    "selected_pods",
]


def port_of(port: int, service: str) -> int:
    """Returns where a service of a run listens.

    Args:
        port: That of launch.listen.
        service: As ``tengen.roles.doors`` has it.
    """
    return port + doors.port_offset(service)


def check_services(overlay: Overlay) -> Iterator[Finding]:
    """Yields services that reach no pod or no port, and programs at another one."""
    for one in overlay.of_kind("Service"):
        pods = selected_pods(overlay, one)
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
    """Yields addresses that roles are to listen on and that nobody reaches.

    In environments the learner's table is at the port, inference at the next; in games
    mirrors ask for the run itself, at the one after that. All by TLS, whose files a
    secret of the pod must have.
    """
    for typed, launch, needed in listeners(overlay):
        if typed.document["kind"] == "MPIJob":
            continue  # its operator makes the Service; check_mpi_listener tells
        listen = launch.listen
        host, _, port = listen.rpartition(":")
        where = f"{typed.path}, launch.listen"
        services = _services(overlay, typed, host)
        if not services:
            rule = (
                "must be of a pod that a Service selects; add one"
                if host in doors.ANYWHERE
                else "must have the name of a Service with clusterIP None; correct it"
            )
            yield overlay.finding(typed.document, where, listen, rule)
            continue
        pods = [pod for one in services for pod in selected_pods(overlay, one)]
        names = ", ".join(f"Service/{one['metadata']['name']}" for one in services)
        for number in (port_of(int(port), one) for one in needed):
            if not any(number in ports_of(one) for one in services):
                rule = f"needs port {number} of {names}; add it, or correct it"
                yield overlay.finding(typed.document, where, listen, rule)
            if pods and _number(pods, number) is None:
                rule = f"needs port {number} of the pod of {names}; add it"
                yield overlay.finding(typed.document, where, listen, rule)
        for name in ("certificate_file", "key_file"):
            file = getattr(launch, name) or "absent"
            if not any(has_secret_file(pod, file) for pod in pods):
                rule = f"must be in a secret that the pod of {names} mounts"
                path = f"{typed.path}, launch.{name}"
                yield overlay.finding(typed.document, path, file, f"{rule}; mount it")


def listeners(
    overlay: Overlay,
) -> Iterator[tuple[Typed, LaunchConfig, Sequence[str]]]:
    """Yields commands with launch.listen, what they set, and the services needed."""
    for typed, _ in parsed_commands(overlay):
        config = config_of(typed)
        if config is None or not config.launch.listen:
            continue
        serving = config.agent.schedule(config).serving
        count = config.launch.of(serving).count
        servers = [doors.server_name(index) for index in range(count)]
        needed = [doors.STORE, *servers] if serving else [doors.RUN_SERVICE]
        yield typed, config.launch, needed


def selected_pods(overlay: Overlay, service: Mapping[str, Any]) -> list[Pod]:
    """Returns the pods that a Service is of."""
    wanted = service["spec"].get("selector", {}).items()
    return [
        pod
        for pod in overlay.pods()
        if wanted
        and wanted <= pod.template.get("metadata", {}).get("labels", {}).items()
    ]


def ports_of(service: Mapping[str, Any]) -> set[int]:
    """Returns the ports of a Service."""
    return {one["port"] for one in service["spec"].get("ports", ())}


def has_secret_file(pod: Pod, file: str) -> bool:
    """Returns whether a file is where a container of a pod mounts a secret."""
    volumes = {one["name"]: one for one in pod.spec.get("volumes", ())}
    return any(
        file.startswith(mount["mountPath"].rstrip("/") + "/")
        and "secret" in volumes.get(mount["name"], {})
        for _, container in pod.containers()
        for mount in container.get("volumeMounts", ())
    )


def _services(overlay: Overlay, typed: Typed, host: str) -> list[Mapping[str, Any]]:
    """Returns the Services by which others reach who listens at a host's name."""
    if host in doors.ANYWHERE:
        # Whatever address the pod has: that of any Service leads there.
        return [
            one
            for one in overlay.of_kind("Service")
            if any(
                pod.document is typed.document for pod in selected_pods(overlay, one)
            )
        ]
    service = overlay.documents.get(("Service", host))
    is_name = service is not None and service["spec"].get("clusterIP") == "None"
    return [service] if service is not None and is_name else []


def _number(pods: list[Pod], target: object) -> int | None:
    """Returns the number of a container's port by name or number; None: no such one."""
    for pod in pods:
        for _, container in pod.containers():
            for port in container.get("ports", ()):
                if target in (port.get("name"), port["containerPort"]):
                    return int(port["containerPort"])
    return None
