"""Manifests: generated from their table, valid by schemas, with valid commands."""

import copy
import re
import shutil
from collections import Counter
from decimal import Decimal

import jsonschema
import pytest
import yaml
from deploy.docker import check_inputs
from scripts.check_manifests import file_problems, main, render_problems
from scripts.manifests import table
from scripts.manifests.renders import RENDERS
from scripts.manifests.schemas import own_schemas, problems, read_crds, strict
from scripts.manifests.table import K8S, ROOT

from tengen.launch.cluster.table import Node, check_fits, check_gpus, table_of
from tengen.launch.workers import workers_at_once
from tengen.roles import doors
from tests.unit.docs.typed import config_of, object_commands

PAGE = (ROOT / "docs" / "howto" / "machines" / "deploy.md").read_text()
FILES = {
    path.relative_to(K8S).as_posix(): list(yaml.safe_load_all(path.read_text()))
    for path in sorted(K8S.rglob("*.yaml"))
    if path.parent.name != "schemas"
}
OBJECTS = [
    (name, one)
    for name, objects in FILES.items()
    for one in objects
    if one["kind"] not in ("Kustomization", "Component")
]

OBJECT = {name: objects[0] for name, objects in FILES.items()}
GO9 = "overlays/rayjob-go9/rayjob.yaml"
ATARI = "overlays/raycluster-atari/raycluster.yaml"
SELFPLAY = "overlays/jobs-selfplay/selfplay.yaml"
MPI = "overlays/mpijob-4gpu-64cpu/mpijob.yaml"
DATA = "minigo/data/job.yaml"


def place(value, path):
    """Returns the value at a path such as ``a.b.0.c``."""
    for word in path.split("."):
        value = value[int(word)] if isinstance(value, list) else value[word]
    return value


def every(value, key):
    """Returns all values of ``key``, at any depth."""
    if isinstance(value, list):
        return [found for one in value for found in every(one, key)]
    if not isinstance(value, dict):
        return []
    here = [value[key]] if key in value else []
    return here + [found for one in value.values() for found in every(one, key)]


def test_files_are_made_of_the_table():
    assert list(file_problems()) == []


@pytest.mark.parametrize(("name", "one"), OBJECTS, ids=lambda one: str(one)[:40])
def test_an_object_fits_its_schema(name, one):
    assert list(problems(one, own_schemas())) == [], name


@pytest.mark.parametrize(
    ("name", "components"), RENDERS, ids=["+".join((n, *c)) for n, c in RENDERS]
)
def test_a_render_fits_its_schemas(name, components):
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed, which renders overlays")
    assert list(render_problems(name, components, own_schemas())) == []


@pytest.mark.parametrize(
    ("document", "path", "key", "value"),
    [
        (GO9, "spec.rayClusterSpec.headGroupSpec", "rayStartParam", {}),
        (
            GO9,
            "spec.rayClusterSpec.headGroupSpec.template.spec.volumes.2.emptyDir",
            *("medum", "Memory"),
        ),
        (SELFPLAY, "spec", "paralelism", 4),
        (ATARI, "spec.workerGroupSpecs.1", "maxReplicas", "6"),
        (GO9, "spec", "entrypoint", None),
        (MPI, "spec.mpiReplicaSpecs.Worker", "restartPolicy", "Always"),
        (MPI, "spec", "slotPerWorker", 1),
        (DATA, "metadata", "lables", {}),
    ],
)
def test_a_field_that_is_wrong_is_found(document, path, key, value):
    changed = copy.deepcopy(OBJECT[document])
    assert list(problems(changed, own_schemas())) == []
    place(changed, path)[key] = value
    (line,) = problems(changed, own_schemas())
    assert key in line


def test_a_kind_without_a_schema_is_found():
    document = OBJECT[GO9] | {"apiVersion": "ray.io/v1alpha1"}
    (line,) = problems(document, own_schemas())
    assert "(ray.io/v1alpha1) must be known" in line


INNER = {"type": "object", "properties": {"b": {"type": "integer"}}}
EITHER = {"type": "string", "x-kubernetes-int-or-string": True}
KEPT = {"properties": {"a": {}}, "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("schema", "value", "is_valid"),
    [
        ({"properties": {"a": INNER}}, {"a": {"b": 1}}, True),
        ({"properties": {"a": INNER}}, {"c": 1}, False),
        ({"properties": {"a": INNER}}, {"a": {"c": 1}}, False),
        ({"items": INNER}, [{"b": 1}, {"c": 1}], False),
        # additionalProperties: true must not hide a misspelled field.
        ({"properties": {}, "additionalProperties": True}, {"c": 1}, False),
        ({"additionalProperties": {"type": "string"}}, {"any": "thing"}, True),
        (KEPT, {"b": 1}, True),
        (EITHER, 1, True),
        (EITHER, [1], False),
        ({"type": "string", "nullable": True}, None, True),
        ({"type": "string"}, None, False),
        # A field may be named like a JSON schema keyword.
        ({"properties": {"nullable": {}, "properties": {}}}, {"nullable": 1}, True),
    ],
)
def test_a_strict_schema(schema, value, is_valid):
    assert jsonschema.Draft202012Validator(strict(schema)).is_valid(value) is is_valid


def test_definitions_of_a_project_take_the_place_of_own_schemas(tmp_path):
    spec = {"type": "object", "properties": {"entrypoint": {"type": "string"}}}
    fields = {name: {} for name in ("apiVersion", "kind", "metadata")}
    version = {
        "name": "v1",
        "schema": {"openAPIV3Schema": {"properties": {**fields, "spec": spec}}},
    }
    crd = {"group": "ray.io", "names": {"kind": "RayJob"}, "versions": [version]}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"spec": crd}))
    found = list(problems(OBJECT[GO9], read_crds(tmp_path)))
    assert any("rayClusterSpec" in line for line in found)


def test_the_command_takes_no_unknown_option():
    with pytest.raises(SystemExit) as ended:
        main(["--unknown"])
    assert ended.value.code == 2


def test_what_pods_refer_to_is_there():
    """Checks the objects of all overlays; users create the secrets themselves."""
    objects = [one for _, one in OBJECTS]
    made = {(one["kind"], one["metadata"]["name"]) for one in objects}
    for content in FILES.values():
        for one in every(content, "configMapGenerator"):
            made |= {("ConfigMap", each["name"]) for each in one}
    for key, name, kind in (
        ("persistentVolumeClaim", "claimName", "PersistentVolumeClaim"),
        ("configMap", "name", "ConfigMap"),
        ("configMapRef", "name", "ConfigMap"),
    ):
        for one in every(objects, key):
            assert (kind, one[name]) in made
    for name in every(objects, "serviceAccountName"):
        assert ("ServiceAccount", name) in made
    secrets = set(every(objects, "secretName")) | {"go9-run"}
    assert all(f"`secret/{name}`" in PAGE for name in secrets)
    for pod in every(objects, "template"):
        containers = every(pod["spec"], "volumeMounts")
        mounted = {mount["name"] for mounts in containers for mount in mounts}
        assert mounted == {one["name"] for one in pod["spec"]["volumes"]}


def test_images_are_those_of_the_docker_files():
    user = re.findall(
        r"^USER (\d+):\1$", check_inputs.HERE.joinpath("Dockerfile").read_text(), re.M
    )
    assert user == [str(table.USER)]
    (component,) = FILES["components/images/kustomization.yaml"]
    tags = {one["name"]: one["newTag"] for one in component["images"]}
    tag = check_inputs.tag()
    assert tags == {table.IMAGE: tag, table.CUDA_IMAGE: f"{tag}-cuda"}


COMMANDS = [typed for name, one in OBJECTS for typed in object_commands(one, name)]


@pytest.mark.parametrize("typed", COMMANDS, ids=lambda typed: typed.where)
def test_tengen_takes_a_command(typed):
    if any(word.startswith("atari/") for word in typed.words):
        pytest.importorskip("ale_py", reason="ale-py is not installed")
    config_of(typed.words)


def config_in(file):
    """Returns the config of the run that a manifest's command creates."""
    found = [config_of(typed.words) for typed in object_commands(FILES[file], file)]
    (config,) = [one for one in found if one is not None]
    return config


def nodes_in(file, *, most=False):
    """Returns the nodes that Ray would list for a cluster's pods."""
    (groups,) = every(FILES[file], "workerGroupSpecs")
    nodes = []
    for group in groups:
        params = group["rayStartParams"]
        for index in range(group["maxReplicas" if most else "replicas"]):
            name = f"{group['groupName']}-{index}"
            cpus, gpus = float(params["num-cpus"]), float(params.get("num-gpus", 0))
            nodes.append(Node(node=name, host=name, num_cpus=cpus, num_gpus=gpus))
    return sorted(nodes, key=lambda node: (-node.num_cpus, node.node))


@pytest.mark.parametrize(
    ("file", "cluster", "roles"),
    [
        ("rayjob-go9/rayjob.yaml", "", "selfplay learn export gate rate"),
        ("rayjob-minigo/rayjob.yaml", "", "selfplay learn export gate"),
        ("raycluster-atari/job.yaml", "raycluster.yaml", "learn inference actor"),
    ],
)
def test_roles_fit_the_pods_of_ray(file, cluster, roles):
    if cluster:
        pytest.importorskip("ale_py", reason="ale-py is not installed")
    config = config_in(f"overlays/{file}")
    workers = workers_at_once(config, 2)
    found = Counter(one.roles[0] for one in workers)
    assert set(found) == set(roles.split())
    assert found["actor"] in (0, 32)
    # Each role sets num_cpus, which Ray reserves and which is its number of threads.
    assert all(config.launch.of(one.roles[0]).num_cpus for one in workers)
    where = f"overlays/{file.partition('/')[0]}/{cluster}" if cluster else ""
    # Only an autoscaling cluster can have more pods than at the start.
    nodes = nodes_in(where or f"overlays/{file}", most=config.launch.grows)
    assert config.launch.grows is bool(cluster)
    check_gpus(config, nodes)
    check_fits(config, table_of(config, nodes), nodes)


def test_plain_jobs_have_each_role_once():
    learner, selfplay = (
        f"overlays/jobs-selfplay/{n}.yaml" for n in ("learner", "selfplay")
    )
    config = config_in(learner)
    roles = [
        typed.words[0]
        for file in (learner, selfplay)
        for typed in object_commands(FILES[file], file)
    ]
    needed = config.schedule.needed
    assert sorted(roles) == sorted((*needed, "train"))


def test_mirrors_connect_where_the_learner_listens():
    (component,) = FILES["components/mirrors/kustomization.yaml"]
    text = (K8S / "components" / "mirrors" / "kustomization.yaml").read_text()
    (listens,) = re.findall(r"launch\.listen=0\.0\.0\.0:(\d+)", text)
    connects = set(re.findall(r"value: go9-learner:(\d+)", text))
    assert connects == {listens}
    (service,) = FILES["components/mirrors/service.yaml"]
    (port,) = (one["port"] for one in service["spec"]["ports"])
    assert port == int(listens) + doors.port_offset(doors.RUN_SERVICE)
    operations = [yaml.safe_load(one) for one in every(component, "patch")]
    (waits,) = re.findall(r'\("go9-learner", (\d+)\)', text)
    (opened,) = every(operations, "containerPort")
    assert [int(waits), opened] == [port, port]
    assert doors.TOKEN_VARIABLE in text


UNITS = {"m": Decimal("0.001"), "": 1, "Gi": 2**30, "Mi": 2**20, "Ti": 2**40}


def amount(quantity):
    match = re.fullmatch(r"(\d+)(m|Mi|Gi|Ti|)", str(quantity))
    return int(match[1]) * Decimal(UNITS[match[2]])


def pods_of(value):
    """Returns pod templates with their maximum numbers of pods."""
    if isinstance(value, list):
        return [found for one in value for found in pods_of(one)]
    if not isinstance(value, dict):
        return []
    found = [pod for one in value.values() for pod in pods_of(one)]
    if "containers" in value.get("template", {}).get("spec", {}):
        counts = [
            value[name]
            for name in ("maxReplicas", "replicas", "parallelism")
            if name in value
        ]
        found.append(((*counts, 1)[0], value["template"]))
    return found


def limits_of(pods):
    """Returns the sums of the limits of all containers."""
    total = {}
    for count, pod in pods:
        for one in pod["spec"]["containers"]:
            for name, value in one["resources"]["limits"].items():
                total[name] = total.get(name, Decimal(0)) + count * amount(value)
    return total


@pytest.mark.parametrize(
    "file", [name for name in FILES if name.startswith(("overlays", "minigo"))]
)
def test_a_queue_admits_all_pods_that_there_may_be(file):
    (volcano,) = FILES["components/queue-volcano/queue.yaml"]
    most = volcano["spec"]["capability"]
    (kueue,) = every(FILES["components/queue-kueue/queue.yaml"], "flavors")
    assert {one["name"]: one["nominalQuota"] for one in kueue[0]["resources"]} == most
    total = limits_of(pods_of(FILES[file]))
    assert all(value <= amount(most[name]) for name, value in total.items()), total
