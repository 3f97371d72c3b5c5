"""Every overlay, alone and with each component: rendered, and without an error."""

from __future__ import annotations

import shutil
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from scripts import check_manifests
from scripts.manifests.commands import config_of, entrypoint_commands
from scripts.manifests.overlay import K8S, open_overlay
from scripts.manifests.render import render

from tengen.errors import UsageError
from tengen.launch.workers import workers_at_once
from tests.unit.deploy.overlays import OVERLAYS, RENDERS, lines, rendered

IDS = ["+".join((name, *components)) for name, components in RENDERS]


def test_the_overlays_and_components_are_there() -> None:
    assert [
        *("jobs-selfplay", "minigo-data"),
        *("mpijob-4gpu-64cpu", "mpijob-8gpu-128cpu"),
        *("raycluster-atari", "rayjob-go9", "rayjob-minigo"),
    ] == OVERLAYS
    used = {one for _, components in RENDERS for one in components}
    # Every overlay has the other two, and those of Ray and MPI the network too.
    assert used == {"gpu", "mirrors", "network", "queue-kueue", "queue-volcano"}


@pytest.mark.parametrize(("name", "components"), RENDERS, ids=IDS)
def test_it_has_no_error(name: str, components: tuple[str, ...]) -> None:
    overlay = rendered(name, *components)
    assert lines(overlay) == []
    assert sum(1 for _ in overlay.pods()) >= (2 if name == "minigo-data" else 3)


@pytest.mark.parametrize(
    "components",
    [
        ("gpu", "mirrors"),
        ("mirrors", "gpu"),
        ("mirrors", "network", "queue-volcano"),
    ],
    ids="+".join,
)
def test_mirrors_go_with_the_others(components: tuple[str, ...]) -> None:
    assert lines(rendered("jobs-selfplay", *components)) == []


@pytest.mark.parametrize(
    ("name", "components"),
    [
        ("jobs-selfplay", ("gpu", "queue-volcano")),
        ("jobs-selfplay", ("gpu", "mirrors", "network", "queue-kueue")),
        ("mpijob-4gpu-64cpu", ("queue-volcano",)),
        ("mpijob-8gpu-128cpu", ("queue-kueue",)),
        ("raycluster-atari", ("queue-volcano",)),
        ("rayjob-go9", ("queue-kueue",)),
        ("rayjob-minigo", ()),
        ("rayjob-go9", ()),
    ],
)
def test_both_renderers_agree(name: str, components: tuple[str, ...]) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed, which renders overlays elsewhere")
    theirs = open_overlay(name, components)
    assert rendered(name, *components).documents == theirs.documents


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("kustomization.yaml", "namePrefix: a-\n", "field namePrefix"),
        ("kustomization.yaml", "resources: [absent.yaml]\n", "absent.yaml"),
        ("kustomization.yaml", "resources: [a.yaml, a.yaml]\n", "ConfigMap/a"),
        ("kustomization.yaml", "resources: [a.yaml\n", "must be YAML"),
        (
            "kustomization.yaml",
            "resources: [a.yaml]\npatches: [{target: {kind: ConfigMap}, "
            "patch: '[{op: replace, path: /data/b, value: c}]'}]\n",
            "/data/b",
        ),
        (
            "kustomization.yaml",
            "resources: [a.yaml]\npatches: [{target: {kind: ConfigMap}, "
            "patch: '{data: {b: c}}'}]\n",
            "must be lists of JSON patch operations",
        ),
        (
            "kustomization.yaml",
            "configMapGenerator: [{name: b, files: [a.yaml]}]\n",
            "must have disableNameSuffixHash",
        ),
        (
            "kustomization.yaml",
            "configMapGenerator: [{name: b, files: [absent.sh]}]\n"
            "generatorOptions: {disableNameSuffixHash: true}\n",
            "absent.sh) cannot be read",
        ),
        (
            "kustomization.yaml",
            "configMapGenerator: [{name: b, envs: [a.yaml]}]\n",
            "field envs",
        ),
        ("a.yaml", "kind: ConfigMap\n", "apiVersion, kind and metadata"),
        (
            "a.yaml",
            "{apiVersion: v1, kind: ConfigMap, metadata: {}}\n",
            "metadata.name; name them",
        ),
    ],
)
def test_the_renderer_refuses(
    tmp_path: Path, file: str, content: str, said: str
) -> None:
    map_text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n"
    (tmp_path / "a.yaml").write_text(map_text)
    (tmp_path / "kustomization.yaml").write_text("resources: [a.yaml]\n")
    assert list(render(tmp_path)) == [("ConfigMap", "a")]
    (tmp_path / file).write_text(content)
    with pytest.raises(UsageError) as refused:
        render(tmp_path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_command_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("ale_py", reason="ale-py is not installed")
    assert check_manifests.main(["jobs-selfplay", "--builtin"]) == 0
    assert capsys.readouterr().out == "6 renders: 0 errors\n"
    words = ["--builtin", "--node", "cpu=16,memory=1Ti"]
    assert check_manifests.main(words) == 1
    found = capsys.readouterr().out.splitlines()
    assert found[0] == (
        "rayjob-go9 deploy/k8s/overlays/rayjob-go9/rayjob.yaml: RayJob/go9 "
        "spec.rayClusterSpec.workerGroupSpecs[1].template, limits of cpu (20) must fit "
        "a node, which has 16; lower its containers'"
    )
    # Its three renders and the sum; no other pod is as large.
    assert len(found) == 4
    assert found[-1] == "23 renders: 3 errors"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["rayjob-go8"],
            "overlay (rayjob-go8) must be of deploy/k8s/overlays; did you",
        ),
        (["--with", "gpus"], "component (gpus) must be of deploy/k8s/components; did"),
        (["--node", "cpu"], "cpu must be NAME=QUANTITY"),
        (["--unknown"], "unrecognized arguments: --unknown"),
    ],
)
def test_bad_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert check_manifests.main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert said in shown.err


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("rayjob-go9", {"selfplay": 1, "learn": 1, "export": 1, "gate": 1, "rate": 1}),
        ("raycluster-atari", {"learn": 1, "inference": 1, "actor": 32}),
        ("rayjob-minigo", {"selfplay": 1, "learn": 1, "export": 1, "gate": 1}),
    ],
)
def test_each_role_of_ray_has_the_cores_that_its_command_names(
    name: str, roles: dict[str, int]
) -> None:
    (typed,) = entrypoint_commands(rendered(name))
    config = config_of(typed)
    assert config is not None
    workers = workers_at_once(config, 2)
    assert Counter(one.roles[0] for one in workers) == roles
    assert all(config.launch.of(one.roles[0]).num_cpus for one in workers)


def test_the_wheel_has_none_of_it() -> None:
    root = K8S.parents[1]
    build = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["scikit-build"]
    assert build["wheel"]["packages"] == ["src/tengen"]
    assert not any((root / "src" / "tengen").rglob("*.yaml"))
