"""Schemas: how they are closed, and how they are held against a project's own."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import io
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from scripts import check_manifests, fetch_crds
from scripts.manifests.crds import read_crds, schema_differences
from scripts.manifests.overlay import ROOT
from scripts.manifests.quantities import parse_quantity
from scripts.manifests.schemas import own_schemas, schema_findings, strict

from tengen.errors import UsageError


def refuses(schema: dict[str, Any], value: Any) -> bool:
    return not jsonschema.Draft202012Validator(strict(schema)).is_valid(value)


def test_a_strict_schema_refuses_what_it_does_not_name() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"a": inner, "list": {"items": inner}}}
    assert not refuses(schema, {"a": {"b": 1}, "list": [{"b": 1}]})
    assert refuses(schema, {"c": 1})
    assert refuses(schema, {"a": {"c": 1}})
    assert refuses(schema, {"list": [{"b": 1}, {"c": 1}]})
    # A schema that says "any other" does not mean a field that is misspelt.
    assert refuses({"properties": {}, "additionalProperties": True}, {"c": 1})


def test_what_a_definition_leaves_open_stays_so() -> None:
    names = {"type": "object", "additionalProperties": {"type": "string"}}
    assert not refuses(names, {"any": "thing"})
    kept = {"properties": {"a": {}}, "x-kubernetes-preserve-unknown-fields": True}
    assert not refuses(kept, {"b": 1})


def test_words_that_only_kubernetes_knows() -> None:
    either = {"type": "string", "x-kubernetes-int-or-string": True}
    assert not refuses(either, 1)
    assert not refuses(either, "1")
    assert refuses(either, [1])
    assert not refuses({"type": "string", "nullable": True}, None)
    assert refuses({"type": "string"}, None)


def test_a_field_may_have_the_name_of_a_word_of_schemas() -> None:
    schema = {"properties": {"nullable": {"type": "boolean"}, "properties": {}}}
    assert not refuses(schema, {"nullable": True, "properties": 1})


@pytest.mark.parametrize(
    ("text", "number"),
    [("500m", "0.5"), ("2", "2"), ("1.5", "1.5"), ("16Gi", "17179869184"), (3, "3")],
)
def test_quantities(text: object, number: str) -> None:
    assert str(parse_quantity(text).normalize()) == str(
        parse_quantity(number).normalize()
    )


@pytest.mark.parametrize("text", ["", "16GB", "Gi", "-1", None, "1 Gi"])
def test_no_quantities(text: object) -> None:
    assert parse_quantity(text) is None


def test_kubernetes_own_kinds_are_closed_too() -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "a", "lables": {}},
        "spec": {"accessModes": "ReadWriteMany"},
    }
    found = sorted(one.path for one in schema_findings(claim))
    assert found == ["metadata.lables", "spec.accessModes"]


def definition(group: str, version: str, kind: str, schema: dict[str, Any]) -> str:
    content = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind},
            "versions": [{"name": version, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    return yaml.safe_dump(content)


def as_theirs(key: tuple[str, str]) -> dict[str, Any]:
    """Returns a definition that agrees with the own schema, in a project's words."""
    schema = copy.deepcopy(own_schemas()[key])
    for name in ("apiVersion", "kind"):
        schema["properties"][name] = {"type": "string"}
    schema["properties"]["metadata"] = {"type": "object"}
    return schema


QUEUE = ("scheduling.volcano.sh/v1beta1", "Queue")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda spec: None, []),
        (
            lambda spec: spec["properties"].pop("weight"),
            ["spec.weight (a field) must be one of theirs; remove it"],
        ),
        (
            lambda spec: spec["properties"]["weight"].update(type="string"),
            ["spec.weight (integer) must be string; correct the schema"],
        ),
        (
            lambda spec: spec.update(required=["weight"]),
            ["spec.weight (optional) must be required; add it to the schema"],
        ),
    ],
)
def test_own_schemas_are_held_against_a_projects(
    change: Any, expected: list[str], tmp_path: Path
) -> None:
    theirs = as_theirs(QUEUE)
    change(theirs["properties"]["spec"])
    group, version = QUEUE[0].split("/")
    (tmp_path / "a.yaml").write_text(definition(group, version, QUEUE[1], theirs))
    found = list(schema_differences(read_crds(tmp_path)))
    where = f"{QUEUE[0]} {QUEUE[1]}."
    assert [line.removeprefix(where) for line in found] == expected


def test_a_map_of_theirs_has_one_schema_for_every_name() -> None:
    key = ("kubeflow.org/v2beta1", "MPIJob")
    theirs = as_theirs(key)
    replica = {
        "type": "object",
        "properties": {
            "replicas": {"type": "integer"},
            "restartPolicy": {"type": "string"},
            "template": {"type": "object"},
        },
    }
    replicas = {"type": "object", "additionalProperties": replica}
    theirs["properties"]["spec"]["properties"]["mpiReplicaSpecs"] = replicas
    assert list(schema_differences({key: theirs})) == []
    replica["properties"]["replicas"] = {"type": "string"}  # type: ignore[index]
    found = list(schema_differences({key: theirs}))
    where = f"{key[0]} {key[1]}.spec.mpiReplicaSpecs"
    rule = "(integer) must be string; correct the schema"
    assert found == [f"{where}.{one}.replicas {rule}" for one in ("Launcher", "Worker")]
    replicas["additionalProperties"] = True
    found = list(schema_differences({key: theirs}))
    assert found[0] == f"{where}.Launcher (a field) must be one of theirs; remove it"


def test_manifests_are_validated_by_a_projects_definitions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = as_theirs(QUEUE)
    theirs["properties"]["spec"]["properties"]["weight"]["minimum"] = 2
    group, version = QUEUE[0].split("/")
    (tmp_path / "a.yaml").write_text(definition(group, version, QUEUE[1], theirs))
    words = ["rayjob-go9", "--with", "queue-volcano", "--builtin"]
    assert check_manifests.main([*words, "--crds", str(tmp_path)]) == 1
    line, total = capsys.readouterr().out.splitlines()
    assert "Queue/tengen spec.weight (minimum) must fit the project's own" in line
    assert total == "1 renders, 1 CRDs: 1 errors"


def test_a_file_is_kept_if_it_is_the_one_that_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    contents = {one.url: f"a: {one.name}".encode() for one in fetch_crds.DEFINITIONS}
    monkeypatch.setattr(
        fetch_crds.urllib.request,
        "urlopen",
        lambda url, timeout: io.BytesIO(contents[url]),
    )
    meant = [
        dataclasses.replace(one, sha256=hashlib.sha256(contents[one.url]).hexdigest())
        for one in fetch_crds.DEFINITIONS
    ]
    monkeypatch.setattr(fetch_crds, "DEFINITIONS", meant)
    assert fetch_crds.main([str(tmp_path / "a")]) == 0
    kept = {path.name for path in (tmp_path / "a").iterdir()}
    assert kept == {one.name for one in meant}
    contents[meant[0].url] += b"!"
    assert fetch_crds.main([str(tmp_path / "b")]) == 1
    assert len(list((tmp_path / "b").iterdir())) == len(meant) - 1
    (line,) = capsys.readouterr().err.splitlines()
    assert meant[0].url in line
    assert fetch_crds.main([]) == 2


def test_every_schema_has_the_definition_that_it_was_written_after() -> None:
    groups = {one.name.split("_")[0] for one in fetch_crds.DEFINITIONS}
    assert {key[0].split("/")[0] for key in own_schemas()} == groups
    assert len(fetch_crds.DEFINITIONS) == len(own_schemas())
    page = (ROOT / "deploy" / "k8s" / "schemas" / "README.md").read_text()
    for one in fetch_crds.DEFINITIONS:
        assert f"| {one.source[1]} |" in page


def test_a_folder_without_definitions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must have CustomResourceDefinitions of"):
        read_crds(tmp_path)
