"""Validates one object at a time, with every object closed to unknown fields.

Kubernetes' own kinds go by the strict schemas of the package kubernetes-validate, the
others by those of deploy/k8s/schemas, whose README tells what they are.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

import jsonschema
import yaml
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from scripts.manifests.finding import Finding
from scripts.manifests.overlay import K8S

__all__ = ["KUBERNETES", "own_schemas", "schema_findings", "strict", "validator_of"]

KUBERNETES = "1.33"
"""Whose schemas Kubernetes' own kinds are held to."""

_CORE = "https://kubernetes.io/api/_definitions.json"
_OWN = "tengen:"


def strict(schema: Any) -> Any:
    """Returns a schema that refuses every field that it does not name.

    Also of a CustomResourceDefinition, whose ``x-kubernetes-int-or-string`` and
    ``nullable`` JSON schema does not know.

    Args:
        schema: A JSON schema, or an ``openAPIV3Schema``.
    """
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {
        # Below these, keys are names and no words of the schema.
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
def own_schemas() -> dict[tuple[str, str], dict[str, Any]]:
    """Returns the schemas of deploy/k8s/schemas by apiVersion and kind, not closed."""
    found = {}
    for path in sorted((K8S / "schemas").glob("*.yaml")):
        schema = yaml.safe_load(path.read_text())
        names = schema["properties"]
        found[names["apiVersion"]["const"], names["kind"]["const"]] = schema
    return found


def validator_of(schema: Mapping[str, Any]) -> Any:
    """Returns a validator that knows Kubernetes' definitions and the own schemas."""
    return jsonschema.Draft202012Validator(schema, registry=_registry())


def schema_findings(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Yields what an object's schema refuses.

    Args:
        document: With apiVersion, kind and metadata.
    """
    key = document["apiVersion"], document["kind"]
    validator = _validators().get(key) or _core_validator(*key)
    name = str(document["metadata"].get("name"))
    if validator is None:
        yield Finding(
            document["kind"],
            name,
            "apiVersion",
            document["apiVersion"],
            "must be a kind that is known; add its schema to deploy/k8s/schemas",
        )
        return
    for error in validator.iter_errors(document):
        yield from _findings(error, document["kind"], name)


def _findings(
    error: jsonschema.ValidationError, kind: str, name: str
) -> Iterator[Finding]:
    # Of null or an object, say, what the object lacks says more than that it is none.
    inner = [one for one in error.context or () if one.validator != "type"]
    if inner:
        yield from (found for one in inner for found in _findings(one, kind, name))
        return
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}"
        for part in error.absolute_path
    ).lstrip(".")
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        for field in error.instance:
            if field not in known:
                where = f"{path}.{field}".lstrip(".")
                rule = "must be a field of the schema; correct or remove it"
                yield Finding(kind, name, where, error.instance[field], rule)
        return
    if error.validator == "required":
        lacking = [one for one in error.validator_value if one not in error.instance]
        for field in lacking:
            where = f"{path}.{field}".lstrip(".")
            yield Finding(kind, name, where, "absent", "must be there; add it")
        return
    said = re.sub(r"^.* (is not|does not)", r"\1", " ".join(error.message.split()))
    rule = f"must fit the schema, {said}; correct it"
    yield Finding(kind, name, path, error.instance, rule)


@functools.cache
def _core_definitions() -> dict[str, Any]:
    folder = resources.files("kubernetes_validate") / "kubernetes-json-schema"
    file = folder / f"v{KUBERNETES}.0-local-strict" / "_definitions.json"
    content: dict[str, Any] = json.loads(file.read_text())
    return content


@functools.cache
def _registry() -> Any:
    own = [
        (_OWN + path.name, strict(yaml.safe_load(path.read_text())))
        for path in sorted((K8S / "schemas").glob("*.yaml"))
    ]
    pairs = [(_CORE, _core_definitions()), *own]
    return Registry().with_resources(
        (name, Resource.from_contents(schema, default_specification=DRAFT202012))
        for name, schema in pairs
    )


@functools.cache
def _validators() -> dict[tuple[str, str], Any]:
    return {key: validator_of(strict(one)) for key, one in own_schemas().items()}


@functools.cache
def _core_validator(api_version: str, kind: str) -> Any:
    group, _, version = api_version.rpartition("/")
    # apps, batch, core, or the first word of networking.k8s.io
    part = group.split(".")[0] or "core"
    ending = f".{part}.{version}.{kind}"
    names = [name for name in _core_definitions()["$defs"] if name.endswith(ending)]
    if len(names) != 1:
        return None
    return validator_of({"$ref": f"{_CORE}#/$defs/{names[0]}"})
