"""Command lines of tengen in manifests: tengen takes them, and they fit their pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scripts.manifests.commands import (
    Typed,
    all_commands,
    parse,
    parsed_commands,
)
from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay, Pod

from tengen.errors import UsageError

__all__ = ["check_commands", "check_deadline", "check_run_directory", "is_on_claim"]


def check_commands(overlay: Overlay) -> Iterator[Finding]:
    """Yields command lines that tengen refuses before it looks at a run."""
    for typed in all_commands(overlay):
        try:
            parse(typed)
        except UsageError as error:
            words = " ".join(("tengen", *typed.words))
            rule = f"must be a command of tengen, {error}"
            yield overlay.finding(typed.document, typed.path, words, rule)


def check_run_directory(overlay: Overlay) -> Iterator[Finding]:
    """Yields runs that are on no claim of their pods, or not the others' run.

    A mirror is neither: ``check_mirrors``.
    """
    first = None
    for typed, args in parsed_commands(overlay):
        if getattr(args, "connect", None) is not None:
            continue
        run = str(getattr(args, "run", None) or getattr(args, "out", None) or "absent")
        for pod in _pods_of(overlay, typed):
            if not is_on_claim(pod, run):
                rule = (
                    "must be below a claim that its pod mounts for writing; correct "
                    "the path, or the mount"
                )
                where = f"{typed.path}, its run directory"
                yield overlay.finding(typed.document, where, f"{run}, {pod.path}", rule)
        first = first or run
        if run != first:
            rule = f"must be the run of the others, {first}; correct it"
            where = f"{typed.path}, its run directory"
            yield overlay.finding(typed.document, where, run, rule)


def check_deadline(overlay: Overlay) -> Iterator[Finding]:
    """Yields jobs that are ended before the minutes of their command are over."""
    for typed, args in parsed_commands(overlay):
        spec = typed.document["spec"]
        deadline_s = spec.get("runPolicy", spec).get("activeDeadlineSeconds")
        minutes = getattr(args, "minutes", None)
        makes_only = getattr(args, "games", None) == 0
        if minutes is None or deadline_s is None or makes_only:
            continue
        if deadline_s <= 60 * minutes:
            rule = f"must be more than the command's {60 * minutes:.0f} s; raise it"
            yield overlay.finding(
                typed.document, "spec.activeDeadlineSeconds", deadline_s, rule
            )


def _pods_of(overlay: Overlay, typed: Typed) -> Iterator[Pod]:
    """Yields the pods that a command's roles work in: of Ray all of the cluster."""
    document: Mapping[str, Any] = typed.document
    selector = document["spec"].get("clusterSelector", {})
    name = selector.get("ray.io/cluster", document["metadata"]["name"])
    for pod in overlay.pods():
        if "submitter" in pod.path.lower():
            continue
        is_its = pod.document["metadata"]["name"] == name
        if is_its and (pod.ray_params is not None or pod.document is document):
            yield pod


def is_on_claim(pod: Pod, run: str) -> bool:
    """Returns whether a folder is below a claim that its pod mounts for writing."""
    volumes = {one["name"]: one for one in pod.spec.get("volumes", ())}
    return any(
        run.startswith(mount["mountPath"].rstrip("/") + "/")
        and "persistentVolumeClaim" in volumes.get(mount["name"], {})
        and not mount.get("readOnly")
        for one in pod.spec.get("containers", ())
        for mount in one.get("volumeMounts", ())
    )
