"""Ray clusters: the RayJobs of Go 9x9 and minigo, and the RayCluster of Atari."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scripts.manifests import table
from scripts.manifests.pods import (
    RESTRICTED,
    Object,
    bursting,
    container,
    labels,
    made,
    mount,
    settings,
    sized,
    template,
    volumes,
    waits_for_data,
)
from scripts.manifests.table import MOUNTS, PORTS, SIZES, Size

_WORKS = ("runs", "scratch", "shared-memory")
_STORE_BYTES = "200000000"
"""Size of Ray's object store; tengen sends only little data through Ray."""


class Folded(str):
    """A long command, written as a folded YAML block."""


def _entrypoint(*words: str, **values: object) -> Folded:
    """Returns a tengen command; ``__`` in a setting's name is replaced with a dot."""
    named = {key.replace("__", "."): value for key, value in values.items()}
    return Folded(" ".join([*words, *settings(named)]))


def _pod(
    component: str,
    names: Sequence[str] = _WORKS,
    *,
    name: str = "ray-worker",
    ports: Sequence[str] = (),
    account: str = table.ACCOUNT,
    **fields: Any,
) -> Object:
    size = SIZES[component]
    image = table.CUDA_IMAGE if size.gpus else table.IMAGE
    box = container(name, sized(size), names, image=image, ports=ports)
    listed = (*names, *(("data-scripts",) if fields else ()))
    sources = {"tls": "atari-tls", "data-scripts": "minigo-data"}
    made_of = volumes(listed, size, sources)
    return template(component, [box], made_of, account=account, **fields)


def _head(component: str, **fields: Any) -> Object:
    ports = ("gcs", "dashboard", "client")
    return {
        "rayStartParams": {
            "# No role here: the head has Ray's tables and tengen's command.": None,
            "num-cpus": "0",
            "dashboard-host": "0.0.0.0",
            "object-store-memory": _STORE_BYTES,
        },
        "template": _pod(component, name="ray-head", ports=ports, **fields),
    }


def _group(
    component: str, pod: Object, *, least: int = 1, most: int = 1, gpus: int = 0
) -> Object:
    """Returns a worker group that declares its pods' cores to Ray.

    Args:
        component: ``RUN-GROUP``.
        pod: The pod template.
        least: Minimum number of pods, and the number at the start.
        most: Maximum number of pods.
        gpus: Declared GPUs: real devices, or a resource that only controls placement.
    """
    params = {"num-cpus": SIZES[component].cpu}
    if gpus:
        params["num-gpus"] = str(gpus)
    return {
        "groupName": component.partition("-")[2],
        "replicas": least,
        "minReplicas": least,
        "maxReplicas": most,
        "rayStartParams": params | {"object-store-memory": _STORE_BYTES},
        "template": pod,
    }


def _submitter() -> Object:
    box = container("submitter", bursting(("250m", "512Mi"), ("1", "1Gi")), ["scratch"])
    pod_volumes = volumes(["scratch"], Size("1", "1Gi", scratch="1Gi"), {})
    return template("submitter", [box], pod_volumes, saves=False, restartPolicy="Never")


def _job(name: str, entrypoint: Folded, spec: Object, cluster: Object) -> Object:
    return made(
        "RayJob",
        name,
        "ray.io/v1",
        spec={
            "entrypoint": entrypoint,
            "submissionMode": "K8sJobMode",
            "# The cluster ends with a job that made it, and only then.": None,
            "shutdownAfterJobFinishes": "rayClusterSpec" in cluster,
            **spec,
            "submitterPodTemplate": _submitter(),
            **cluster,
        },
    )


def _cluster(head: Object, *groups: Object) -> Object:
    spec = {"headGroupSpec": head, "workerGroupSpecs": list(groups)}
    return {"rayVersion": table.RAY_VERSION, **spec}


def go9() -> Object:
    """Returns the RayJob of Go 9x9."""
    # Every role sets num_cpus, which Ray reserves and which is its number of threads.
    # Self-play finds its 16 cores free wherever Ray places the small roles.
    entrypoint = _entrypoint(
        f"tengen train go/9 --launch ray --out {table.GO9} --minutes {table.MINUTES}",
        launch__roles__selfplay__num_cpus=16,
        launch__roles__learn__num_cpus=4,
        launch__roles__learn__num_gpus=1,
        launch__roles__export__num_cpus=1,
        launch__roles__gate__num_cpus=1,
        launch__roles__rate__num_cpus=1,
    )
    spec = {
        "ttlSecondsAfterFinished": 3600,
        "# Longer than --minutes, by the time to start and to save.": None,
        "activeDeadlineSeconds": 60 * (table.MINUTES + 120),
        "# A cluster that gets no nodes is given up; KubeRay 1.6 and later.": None,
        "preRunningDeadlineSeconds": 3600,
        "# Each retry is a new cluster, which resumes the run for --minutes.": None,
        "backoffLimit": 2,
    }
    cluster = _cluster(
        _head("go9-head"),
        # The learner requests the one "GPU" of its group, a resource without a device.
        _group("go9-learner", _pod("go9-learner"), gpus=1),
        # One self-play process, which uses all of its cores.
        _group("go9-selfplay", _pod("go9-selfplay")),
    )
    return _job("go9", entrypoint, spec, {"rayClusterSpec": cluster})


def minigo() -> Object:
    """Returns the RayJob of MLPerf minigo."""
    # On Ray, export has no GPU but compares a model on the devices on which it plays.
    # So one pod learns on its GPU, and the others play on CPUs. The learner leaves too
    # few cores in its pod for a self-play process.
    entrypoint = _entrypoint(
        "tengen train go/19 --recipe mlperf_minigo --launch ray --out",
        table.MINIGO,
        inference__devices="cpu",
        launch__roles__selfplay__num_cpus=14,
        launch__roles__learn__num_cpus=12,
        launch__roles__learn__num_gpus=1,
        launch__roles__export__num_cpus=1,
        launch__roles__gate__num_cpus=1,
        agent__target__opponent=f"{table.DATA}/target",
        learner__initial_model=f"{table.DATA}/checkpoint",
        store__imported=f"{table.DATA}/examples",
    )
    spec = {
        "ttlSecondsAfterFinished": 3600,
        "# Seven days: 70 models are projected to take 114 h, then evaluation.": None,
        "activeDeadlineSeconds": 7 * 86400,
        "# A cluster that gets no nodes, or no data, is given up.": None,
        "preRunningDeadlineSeconds": table.DATA_WAIT_S + 3600,
        "# Each retry is a new cluster, which resumes the run.": None,
        "backoffLimit": 2,
    }
    cluster = _cluster(
        # The cluster is ready when its head is, and the head waits for the data.
        _head("minigo-head", initContainers=[waits_for_data()]),
        _group("minigo-learner", _pod("minigo-learner"), gpus=1),
        _group("minigo-selfplay", _pod("minigo-selfplay"), least=4, most=4),
    )
    return _job("minigo", entrypoint, spec, {"rayClusterSpec": cluster})


def atari_job() -> Object:
    """Returns the RayJob of Pong, on the permanent cluster."""
    # 32 actors with one core each, in four pods of eight that the autoscaler adds while
    # actors wait; launch.grows makes tengen wait too.
    entrypoint = _entrypoint(
        "tengen train atari/Pong --agent vtrace --launch ray --out",
        table.PONG,
        "--frames 10M --actors 32",
        launch__roles__actor__num_cpus=1,
        launch__roles__learn__num_cpus=4,
        launch__roles__learn__num_gpus=1,
        launch__roles__inference__num_cpus=4,
        launch__roles__inference__num_gpus=1,
        launch__grows="true",
        launch__listen=f"atari-learner:{PORTS['table']}",
        launch__certificate_file=f"{MOUNTS['tls']}/tls.crt",
        launch__key_file=f"{MOUNTS['tls']}/tls.key",
    )
    cluster = {"clusterSelector": {"ray.io/cluster": "atari"}}
    return _job("atari-train", entrypoint, {"activeDeadlineSeconds": 86400}, cluster)


def atari_cluster() -> Object:
    """Returns the RayCluster with an autoscaling group of actors."""
    scaling = {
        "enableInTreeAutoscaling": True,
        "autoscalerOptions": {
            "upscalingMode": "Default",
            "idleTimeoutSeconds": 120,
            "resources": bursting(("250m", "512Mi"), ("1", "1Gi")),
            "securityContext": {"runAsNonRoot": True, **RESTRICTED},
            "volumeMounts": [mount("scratch")],
        },
    }
    ports = ("table", "inference")
    learner = _pod("atari-learner", (*_WORKS, "tls"), ports=ports)
    cluster = _cluster(
        _head("atari-head", account=table.AUTOSCALER),
        # Learner and inference share a pod: each requests one of the two "GPUs".
        _group("atari-learner", learner, gpus=2),
        _group("atari-actor", _pod("atari-actor"), most=6),
    )
    return made("RayCluster", "atari", "ray.io/v1", spec=scaling | cluster)


def atari_service() -> Object:
    """Returns the Service for the learner's table and for inference."""
    names = ("table", "inference")
    spec = {
        "# No address of its own: its name is its pod's, where roles listen.": None,
        "# The learner looks that name up before it is ready.": None,
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": labels("atari-learner"),
        "ports": [{"name": n, "port": PORTS[n], "targetPort": n} for n in names],
    }
    return made("Service", "atari-learner", spec=spec)
