"""Errors in who reaches the head of a Ray cluster."""

from __future__ import annotations

from typing import Any

from tests.unit.deploy.planting import Planted, of

POLICY = ("NetworkPolicy", "tengen")
GO9 = ("RayJob", "go9")
_LABELS = "metadata.labels"


def _of_policy(what: str, path: str, key: str, value: Any, *found: str) -> Planted:
    return Planted(what, "rayjob-go9", POLICY, path, key, value, found)


NETWORK = [
    _of_policy(
        *("a head that anybody reaches", "spec.podSelector.matchLabels"),
        *("app.kubernetes.io/part-of", "tengin"),
        "RayJob/go9 spec.rayClusterSpec.headGroupSpec.template, its NetworkPolicy (ab",
    ),
    _of_policy(
        *("a policy of what goes out", "spec", "policyTypes", ["Egress"]),
        "RayJob/go9 spec.rayClusterSpec.headGroupSpec.template, its NetworkPolicy (ab",
    ),
    _of_policy(
        *("a rule for everybody", "spec.ingress.1", "from", None),
        "NetworkPolicy/tengen spec.ingress[1].from (absent) must name pods, or everybo",
        "NetworkPolicy/tengen spec.ingress, port 8265 (absent) must let KubeRay's oper",
    ),
    _of_policy(
        *("a rule for every pod of the namespace", "spec.ingress.0.from.0"),
        *("podSelector", {}),
        "NetworkPolicy/tengen spec.ingress[0].from[0] ({'podSelector': {}}) must name",
    ),
    _of_policy(
        *("a rule for every namespace", "spec.ingress.1.from.0"),
        *("namespaceSelector", {}),
        "NetworkPolicy/tengen spec.ingress[1].from[0] ({'namespaceSelector': {}, 'podS",
    ),
    _of_policy(
        *("a rule for a whole namespace", "spec.ingress.1.from.0"),
        *("podSelector", None),
        "NetworkPolicy/tengen spec.ingress[1].from[0] ({'namespaceSelector': {'matchLa",
    ),
    _of_policy(
        *("a rule for addresses", "spec.ingress.0.from"),
        *("0", {"ipBlock": {"cidr": "0.0.0.0/0"}}),
        "NetworkPolicy/tengen spec.ingress[0].from[0] ({'ipBlock': {'cidr': '0.0.0.0/0",
        *(
            f"RayJob/go9 {path}.metadata.labels ({{'app.kubernetes.io/part-of': 'tengen"
            for path in (
                "spec.submitterPodTemplate",
                "spec.rayClusterSpec.headGroupSpec.template",
                "spec.rayClusterSpec.workerGroupSpecs[0].template",
                "spec.rayClusterSpec.workerGroupSpecs[1].template",
            )
        ),
    ),
    _of_policy(
        *("an operator at another port", "spec.ingress.1.ports.0", "port", 8266),
        "NetworkPolicy/tengen spec.ingress, port 8265 (absent) must let KubeRay's oper",
    ),
    Planted(
        *("a pod of Ray that the head keeps out", "rayjob-go9", GO9),
        "spec.rayClusterSpec.workerGroupSpecs.1.template.metadata.labels",
        *("app.kubernetes.io/part-of", "other"),
        of(
            GO9,
            "spec.rayClusterSpec.workerGroupSpecs[1].template.metadata.labels "
            "({'app.kubernetes.io/part-of': 'other'",
        ),
    ),
    Planted(
        *("a submitter that the head keeps out", "raycluster-atari"),
        *(("RayJob", "atari-train"), "spec.submitterPodTemplate.metadata.labels"),
        *("app.kubernetes.io/part-of", None),
        of(
            ("RayJob", "atari-train"),
            "spec.submitterPodTemplate.metadata.labels ({'app.kubernetes.io/component",
        ),
    ),
]
