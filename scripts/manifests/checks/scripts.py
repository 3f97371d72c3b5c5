"""Scripts and settings that pods have from maps: there, and of one port and one key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from scripts.manifests.commands import config_of, parsed_commands
from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay, Pod

from tengen.roles import RunConfig

__all__ = ["check_data", "check_data_paths", "check_scripts", "check_ssh"]

_FETCH, _WAIT = "fetch.sh", "wait.sh"
_MARKER = "READY"
_MADE = re.compile(r'--out "\$folder/([\w-]+)"')
"""What fetch.sh makes in its folder."""
_FROM_DATA = "agent.target.opponent", "learner.initial_model", "store.imported"
_LEAST_PORT = 1024
"""Below it a port is root's."""


def check_scripts(overlay: Overlay) -> Iterator[Finding]:
    """Yields files in commands that are in no map that their container mounts."""
    for pod in overlay.pods():
        for path, container in pod.containers():
            files = _files(overlay, pod, container)
            folders = {name.rpartition("/")[0] + "/" for name in files}
            for word in container.get("command", ()):
                if str(word).startswith(tuple(folders)) and word not in files:
                    rule = f"must be of its map, {', '.join(sorted(files))}; correct it"
                    yield pod.finding(f"{path}, its command", word, rule)


def check_ssh(overlay: Overlay) -> Iterator[Finding]:
    """Yields workers of MPIJobs that the launcher's ssh does not reach.

    Both sides have the port of sshd, which the probe asks too, and the key that the
    operator mounts; without a probe a worker is ready before it lets anybody in.
    """
    for pod in overlay.pods():
        if pod.replica != "Worker":
            continue
        job = pod.document
        worker = pod.spec["containers"][0]
        where = f"{pod.path}.spec.containers[0]"
        server = _settings(overlay, pod, "sshd_config")
        (launcher,) = (
            one
            for one in overlay.pods()
            if one.document is job and one.replica == "Launcher"
        )
        client = _settings(overlay, launcher, "ssh_config")
        port = server.get("Port", "absent")
        if not port.isdecimal() or int(port) < _LEAST_PORT:
            rule = f"must be {_LEAST_PORT} or more, as sshd is not root's; correct it"
            yield pod.finding(f"{where}, Port of its sshd_config", port, rule)
            continue
        if client.get("Port") != port:
            rule = f"must be that of the workers' sshd, {port}; correct one of them"
            at = f"{launcher.path}.spec.containers[0], Port of its ssh_config"
            yield launcher.finding(at, client.get("Port", "absent"), rule)
        names = {one["containerPort"]: one.get("name") for one in worker["ports"]}
        if int(port) not in names:
            rule = f"must have that of its sshd, {port}; correct one of them"
            yield pod.finding(f"{where}.ports", sorted(names), rule)
        probe = worker.get("readinessProbe", {}).get("tcpSocket", {}).get("port")
        if probe not in (int(port), names.get(int(port), "")):
            rule = f"must ask the port of its sshd, {port}; correct it"
            yield pod.finding(f"{where}.readinessProbe", probe or "absent", rule)
        folder = job["spec"]["sshAuthMountPath"].rstrip("/") + "/"
        for settings, name in (
            (server, "HostKey"),
            (server, "AuthorizedKeysFile"),
            (client, "IdentityFile"),
        ):
            if not settings.get(name, "").startswith(folder):
                rule = f"must be below sshAuthMountPath, {folder}; correct one of them"
                at = f"{where}, {name} of the settings of ssh"
                yield pod.finding(at, settings.get(name, "absent"), rule)


def check_data(overlay: Overlay) -> Iterator[Finding]:
    """Yields pods that wait for a file which no Job of the overlay makes."""
    made = {
        f"{folder}/{_MARKER}": f"job/{pod.document['metadata']['name']}"
        for pod, _, folder in _fetching(overlay)
    }
    for pod in overlay.pods():
        for path, container in pod.containers():
            if not _runs(container, _WAIT):
                continue
            file, seconds, who = (*map(str, container.get("args", ())), "", "", "")[:3]
            if made.get(file) != who:
                known = ", ".join(f"{one} of {job}" for one, job in made.items())
                rule = f"must be what a Job makes, {known or 'none'}; correct it"
                yield pod.finding(f"{path}.args", f"{file} of {who}", rule)
            if not seconds.isdecimal():
                rule = "must be seconds, after which the wait is over; set it"
                yield pod.finding(f"{path}.args", seconds, rule)


def check_data_paths(overlay: Overlay) -> Iterator[Finding]:
    """Yields runs that begin from files which the overlay's data Job does not make."""
    made = [
        f"{folder}/{name}"
        for pod, container, folder in _fetching(overlay)
        for path, text in _files(overlay, pod, container).items()
        if path.endswith(f"/{_FETCH}")
        for name in _MADE.findall(text)
    ]
    for typed, _ in parsed_commands(overlay):
        config = config_of(typed)
        if config is None or not made:
            continue
        for name in _FROM_DATA:
            path = str(_value(config, name) or "")
            # A target may also be a program or a kind of player.
            if path.startswith("/") and path not in made:
                rule = f"must be what the data's Job makes, {', '.join(made)}"
                where = f"{typed.path}, {name}"
                yield overlay.finding(
                    typed.document, where, path, f"{rule}; correct it"
                )


def _value(config: RunConfig, name: str) -> object:
    """Returns a setting by its name with points; None where a run has none such."""
    found: object = config
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _fetching(overlay: Overlay) -> Iterator[tuple[Pod, Mapping[str, Any], str]]:
    """Yields the containers that fetch data, with the folder that has it then."""
    for pod in overlay.pods():
        for _, container in pod.containers():
            if _runs(container, _FETCH):
                yield pod, container, str(container["args"][0])


def _runs(container: Mapping[str, Any], script: str) -> bool:
    words = container.get("command", ())
    return any(str(word).endswith(f"/{script}") for word in words)


def _files(overlay: Overlay, pod: Pod, container: Mapping[str, Any]) -> dict[str, str]:
    """Returns the files of maps that a container mounts: what they hold, by path."""
    maps = {
        one["name"]: one["configMap"]["name"]
        for one in pod.spec.get("volumes", ())
        if "configMap" in one
    }
    found = {}
    for mount in container.get("volumeMounts", ()):
        source = "ConfigMap", maps.get(mount["name"], "")
        for name, text in overlay.documents.get(source, {}).get("data", {}).items():
            found[f"{mount['mountPath'].rstrip('/')}/{name}"] = text
    return found


def _settings(overlay: Overlay, pod: Pod, name: str) -> dict[str, str]:
    """Returns the settings in a file of ssh that a pod has."""
    files = _files(overlay, pod, pod.spec["containers"][0])
    texts = [text for path, text in files.items() if path.endswith(f"/{name}")]
    return dict(re.findall(r"^\s*(\w+) (.+)$", "".join(texts[:1]), re.M))
