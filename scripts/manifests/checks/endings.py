"""How pods and jobs end: in time to save, and not never."""

from __future__ import annotations

from collections.abc import Iterator

from scripts.manifests.checks.pods import is_working
from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay

__all__ = ["check_grace", "check_job_ends", "check_rayjob_ends"]

# Kubernetes' default, which a checkpoint on a shared filesystem may exceed.
_DEFAULT_GRACE_S = 30
# Of RayJobs that make a cluster.
_CLUSTER_ENDS = ("preRunningDeadlineSeconds", "ttlSecondsAfterFinished")


def check_grace(overlay: Overlay) -> Iterator[Finding]:
    """Yields pods that are killed before a role that is asked to end has saved."""
    for pod in overlay.pods():
        given_s = pod.spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_S)
        if is_working(pod) and given_s <= _DEFAULT_GRACE_S:
            where = f"{pod.path}.spec.terminationGracePeriodSeconds"
            rule = f"must be more than {_DEFAULT_GRACE_S} s, so that a role can save"
            yield pod.finding(where, given_s, f"{rule}; raise it")


def check_job_ends(overlay: Overlay) -> Iterator[Finding]:
    """Yields Jobs without an end, and restart policies that a Job cannot have."""
    for one in overlay.of_kind("Job"):
        spec = one["spec"]
        for name in (
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
        ):
            if name not in spec:
                rule = "must be there; add it"
                yield overlay.finding(one, f"spec.{name}", "absent", rule)
        policy = spec["template"]["spec"].get("restartPolicy", "absent")
        path = "spec.template.spec.restartPolicy"
        if policy not in ("Never", "OnFailure"):
            rule = "must be Never or OnFailure; choose one"
            yield overlay.finding(one, path, policy, rule)
        elif "podFailurePolicy" in spec and policy != "Never":
            rule = "must be Never where there is a podFailurePolicy; set it"
            yield overlay.finding(one, path, policy, rule)


def check_rayjob_ends(overlay: Overlay) -> Iterator[Finding]:
    """Yields RayJobs that keep a cluster when they are over, or wait for ever."""
    for one in overlay.of_kind("RayJob"):
        spec = one["spec"]
        makes_one = "rayClusterSpec" in spec
        needed = ("activeDeadlineSeconds", *(_CLUSTER_ENDS if makes_one else ()))
        for name in needed:
            if name not in spec:
                rule = "must be there; add it"
                yield overlay.finding(one, f"spec.{name}", "absent", rule)
        if spec.get("shutdownAfterJobFinishes", False) != makes_one:
            rule = f"must be {str(makes_one).lower()} of this cluster; set it"
            path = "spec.shutdownAfterJobFinishes"
            found = spec.get("shutdownAfterJobFinishes", "absent")
            yield overlay.finding(one, path, found, rule)
        pod = spec.get("submitterPodTemplate", {}).get("spec", {})
        policy = pod.get("restartPolicy", "absent")
        if policy != "Never":
            path = "spec.submitterPodTemplate.spec.restartPolicy"
            yield overlay.finding(one, path, policy, "must be Never; set it")
