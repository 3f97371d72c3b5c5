"""Validates Kubernetes objects against schemas that reject unknown fields.

Kubernetes' own kinds use the strict schemas of the package kubernetes-validate; other
kinds use those of deploy/k8s/schemas, which its README describes.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from scripts.manifests.table import K8S

Schemas = Mapping[tuple[str, str], dict[str, Any]]
"""Closed schemas by apiVersion and kind."""

_KUBERNETES = "1.33"
_CORE = "https://kubernetes.io/api/_definitions.json"


def strict(schema: Any) -> Any:
    """Returns a schema that rejects every field that it does not declare.

    Also converts ``x-kubernetes-int-or-string`` and ``nullable`` of a
    CustomResourceDefinition, which are not part of JSON schema.

    Args:
        schema: A JSON schema, or an ``openAPIV3Schema``.
    """
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {
        # The keys of these objects are field names, not schema keywords.
        key: {name: strict(one) for name, one in value.items()}
        if key in ("properties", "$defs", "patternProperties")
        else strict(value)
        for key, value in schema.items()
    }
    if closed.pop("x-kubernetes-int-or-string", False):
        closed.pop("type", None)
        closed["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    is_open = closed.get("x-kubernetes-preserve-unknown-fields", False)
    says_any = closed.get("additionalProperties", True) is True
    if "properties" in closed and says_any and not is_open:
        closed["additionalProperties"] = False
    if closed.pop("nullable", False):
        return {"anyOf": [{"type": "null"}, closed]}
    return closed


@functools.cache
def own_schemas() -> Schemas:
    """Returns the schemas of deploy/k8s/schemas."""
    found = {}
    for path in sorted((K8S / "schemas").glob("*.yaml")):
        schema = strict(yaml.safe_load(path.read_text()))
        names = schema["properties"]
        found[names["apiVersion"]["const"], names["kind"]["const"]] = schema
    return found


def read_crds(folder: Path) -> Schemas:
    """Returns the schemas of the CustomResourceDefinitions in a folder's YAML files."""
    found = {}
    for path in sorted(folder.glob("*.yaml")):
        for one in yaml.safe_load_all(path.read_text()):
            spec = one["spec"]
            for version in spec["versions"]:
                key = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
                found[key] = strict(version["schema"]["openAPIV3Schema"])
    return found


def problems(document: Mapping[str, Any], schemas: Schemas) -> Iterator[str]:
    """Yields the problems of an object, one line per problem.

    Args:
        document: An object with apiVersion, kind and metadata.
        schemas: Schemas of all kinds that are not Kubernetes' own.
    """
    key = document["apiVersion"], document["kind"]
    shown = f"{key[1]}/{document['metadata']['name']}"
    schema = schemas.get(key) or _core_schema(*key)
    if schema is None:
        yield f"{shown} apiVersion ({key[0]}) must be known; add a schema of the kind"
        return
    validator = jsonschema.Draft202012Validator(schema, registry=_registry())
    for error in validator.iter_errors(document):
        inner = jsonschema.exceptions.best_match([error])
        message = " ".join(inner.message.split())
        yield f"{shown} {inner.json_path} ({message}) must fit the schema; correct it"


@functools.cache
def _core_definitions() -> dict[str, Any]:
    folder = resources.files("kubernetes_validate") / "kubernetes-json-schema"
    file = folder / f"v{_KUBERNETES}.0-local-strict" / "_definitions.json"
    content: dict[str, Any] = json.loads(file.read_text())
    return content


@functools.cache
def _registry() -> Any:
    own = [
        (f"tengen:{path.name}", strict(yaml.safe_load(path.read_text())))
        for path in (K8S / "schemas").glob("*.yaml")
    ]
    return Registry().with_resources(
        (name, Resource.from_contents(schema, default_specification=DRAFT202012))
        for name, schema in ((_CORE, _core_definitions()), *own)
    )


def _core_schema(api_version: str, kind: str) -> dict[str, Any] | None:
    group, _, version = api_version.rpartition("/")
    # apps, batch, core, or the first component of networking.k8s.io
    part = group.split(".")[0] or "core"
    ending = f".{part}.{version}.{kind}"
    names = [name for name in _core_definitions()["$defs"] if name.endswith(ending)]
    return {"$ref": f"{_CORE}#/$defs/{names[0]}"} if len(names) == 1 else None
