"""CustomResourceDefinitions of projects, for whoever has them: see check_manifests.

What deploy/k8s/schemas says is held against them, and manifests are validated by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scripts.manifests.finding import Finding
from scripts.manifests.overlay import Overlay
from scripts.manifests.render import read_documents
from scripts.manifests.schemas import own_schemas, strict, validator_of

from tengen.errors import UsageError

__all__ = ["Crds", "crd_findings", "read_crds", "schema_differences"]

Crds = dict[tuple[str, str], dict[str, Any]]
"""``openAPIV3Schema`` by apiVersion and kind."""


def read_crds(folder: Path) -> Crds:
    """Returns the definitions in a folder's YAML files.

    Raises:
        UsageError: A file is no YAML, or none has a definition of a kind that is used.
    """
    found: Crds = {}
    for path in sorted(folder.glob("*.yaml")):
        for one in read_documents(path):
            if one["kind"] != "CustomResourceDefinition":
                continue
            spec = one["spec"]
            for version in spec["versions"]:
                key = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
                found[key] = version["schema"]["openAPIV3Schema"]
    if not found.keys() & own_schemas().keys():
        kinds = ", ".join(sorted(kind for _, kind in own_schemas()))
        raise UsageError(
            f"crds ({folder}) must have CustomResourceDefinitions of {kinds}; name "
            f"their folder"
        )
    return found


def crd_findings(overlay: Overlay, crds: Crds) -> Iterator[Finding]:
    """Yields what the definitions, made strict, refuse of an overlay's objects."""
    for one in overlay.documents.values():
        schema = crds.get((one["apiVersion"], one["kind"]))
        if schema is None:
            continue
        for error in validator_of(strict(schema)).iter_errors(one):
            path = ".".join(str(part) for part in error.absolute_path)
            said = " ".join(error.message.split())[-200:]
            rule = f"must fit the project's own definition, {said}; correct it"
            yield overlay.finding(one, path, error.validator, rule)


def schema_differences(crds: Crds) -> Iterator[str]:
    """Yields a line for each field of deploy/k8s/schemas that is not the projects'."""
    for key, own in own_schemas().items():
        if key in crds:
            where = f"{key[0]} {key[1]}"
            yield from _differences(where, own, crds[key], own_schemas())


def _differences(
    where: str,
    own: Mapping[str, Any],
    theirs: Mapping[str, Any],
    all_own: Mapping[tuple[str, str], dict[str, Any]],
) -> Iterator[str]:
    reference = own.get("$ref", "")
    if reference.startswith("tengen:"):
        file, _, pointer = reference.removeprefix("tengen:").partition("#/")
        api_version, kind = file.removesuffix(".yaml").rsplit("_", 1)
        place: Any = all_own[api_version.replace("_", "/"), kind]
        for word in pointer.split("/"):
            place = place[word]
        own = place
    elif reference:
        if theirs.get("type") != "object":
            yield f"{where} (object) must be {theirs.get('type')}; correct the schema"
        return
    types = own.get("type", "string" if "const" in own else None)
    their_type = theirs.get("type", "int or string")
    if isinstance(types, str) and types != their_type:
        yield f"{where} ({types}) must be {their_type}; correct the schema"
    strangers = set(own.get("enum", ())) - set(theirs.get("enum", own.get("enum", ())))
    if strangers:
        yield f"{where} ({sorted(strangers)}) must be values of theirs; remove them"
    lacking = set(theirs.get("required", ())) - set(own.get("required", ()))
    for name in sorted(lacking & own.get("properties", {}).keys()):
        yield f"{where}.{name} (optional) must be required; add it to the schema"
    # A map of theirs has the same schema for every name.
    any_name = theirs.get("additionalProperties")
    for name, one in own.get("properties", {}).items():
        their_field = theirs.get("properties", {}).get(name, any_name)
        if not isinstance(their_field, dict):
            yield f"{where}.{name} (a field) must be one of theirs; remove it"
        else:
            yield from _differences(f"{where}.{name}", one, their_field, all_own)
    if isinstance(own.get("items"), dict):
        yield from _differences(f"{where}[]", own["items"], theirs["items"], all_own)
