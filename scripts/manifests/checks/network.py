"""Who reaches the head of a Ray cluster: pods of the run, and KubeRay's operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay, Pod

__all__ = ["check_network"]

_DASHBOARD = 8265
"""Ray's, to which anybody who reaches it submits programs."""


def check_network(overlay: Overlay) -> Iterator[Finding]:
    """Yields heads that others reach, or that those do not who must."""
    for head in overlay.pods():
        if head.group != "head":
            continue
        policies = [
            one
            for one in overlay.of_kind("NetworkPolicy")
            if "Ingress" in one["spec"].get("policyTypes", ("Ingress",))
            and _selects(one["spec"]["podSelector"], head)
        ]
        if not policies:
            rule = (
                f"must be there, as whoever reaches port {_DASHBOARD} runs programs; "
                f"add the component network"
            )
            yield head.finding(f"{head.path}, its NetworkPolicy", "absent", rule)
            continue
        for one in policies:
            yield from _open_rules(overlay, one)
        yield from _kept_out(overlay, policies)


def _open_rules(overlay: Overlay, policy: Mapping[str, Any]) -> Iterator[Finding]:
    """Yields rules of a policy that let in pods that nobody named."""
    for index, rule in enumerate(policy["spec"].get("ingress", ())):
        where = f"spec.ingress[{index}].from"
        if not rule.get("from"):
            said = "must name pods, or everybody comes in; add them"
            yield overlay.finding(policy, where, "absent", said)
        for place, peer in enumerate(rule.get("from", ())):
            selectors = [peer.get("podSelector", {})]
            if "namespaceSelector" in peer:
                selectors.append(peer["namespaceSelector"])
            if not all(map(_has_labels, selectors)):
                said = (
                    "must name pods by labels, and of another namespace that one too; "
                    "name them"
                )
                yield overlay.finding(policy, f"{where}[{place}]", peer, said)


def _kept_out(
    overlay: Overlay, policies: Sequence[Mapping[str, Any]]
) -> Iterator[Finding]:
    """Yields pods of Ray that a head keeps out, and the operator likewise."""
    rules = [rule for one in policies for rule in one["spec"].get("ingress", ())]
    selectors = [
        peer["podSelector"]
        for rule in rules
        if not rule.get("ports")
        for peer in rule.get("from", ())
        if "podSelector" in peer and "namespaceSelector" not in peer
    ]
    for pod in overlay.pods():
        is_of_ray = pod.ray_params is not None or "submitter" in pod.path.lower()
        if is_of_ray and not any(_selects(one, pod) for one in selectors):
            said = "must be pods that a NetworkPolicy lets in to the head; add labels"
            labels = pod.template.get("metadata", {}).get("labels", {})
            yield pod.finding(f"{pod.path}.metadata.labels", labels, said)
    is_let_in = any(
        "namespaceSelector" in peer
        for rule in rules
        if _DASHBOARD in [one.get("port") for one in rule.get("ports", ())]
        for peer in rule.get("from", ())
    )
    if not is_let_in:
        said = "must let KubeRay's operator in, of its namespace; add a rule"
        where = f"spec.ingress, port {_DASHBOARD}"
        yield overlay.finding(policies[0], where, "absent", said)


def _has_labels(selector: Mapping[str, Any]) -> bool:
    return bool(selector.get("matchLabels") or selector.get("matchExpressions"))


def _selects(selector: Mapping[str, Any], pod: Pod) -> bool:
    """Returns whether a selector is of a pod; one by expressions is not understood."""
    labels = pod.template.get("metadata", {}).get("labels", {})
    if selector.get("matchExpressions"):
        return False
    wanted = selector.get("matchLabels", {})
    return bool(wanted.items() <= labels.items())
