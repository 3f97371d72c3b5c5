"""Errors in the MPIJobs, and in what they and the RayJob of the benchmark wait for."""

from __future__ import annotations

from typing import Any

from tests.unit.deploy.planting import Planted

JOB = ("MPIJob", "minigo")
RAY = ("RayJob", "minigo")
SCRIPTS = ("ConfigMap", "minigo-mpi")
_FOUR = "mpijob-4gpu-64cpu"
_LAUNCHER = "spec.mpiReplicaSpecs.Launcher"
_WORKER = "spec.mpiReplicaSpecs.Worker"
_LAUNCHES = f"{_LAUNCHER}.template.spec.containers[0]"
_WORKS = f"{_WORKER}.template.spec.containers[0]"
_ARGS = f"{_LAUNCHER}.template.spec.containers.0.args"
_BOX = f"{_WORKER}.template.spec.containers.0"
_SSHD = "Port 2222\nHostKey /etc/tengen/ssh/id_rsa\nAuthorizedKeysFile "
_KEYS = "/etc/tengen/ssh/authorized_keys\n"


def _of(what: str, path: str, key: str, value: Any, *found: str) -> Planted:
    lines = tuple(f"MPIJob/minigo {line}" for line in found)
    return Planted(what, _FOUR, JOB, path, key, value, lines)


def _in(
    component: str, what: str, path: str, key: str, value: Any, *found: str
) -> Planted:
    lines = tuple(f"MPIJob/minigo {line}" for line in found)
    return Planted(what, _FOUR, JOB, path, key, value, lines, (component,))


MPI = [
    _of(
        *("slots that are misspelt", "spec", "slotPerWorker", 1),
        "spec.slotPerWorker (1) must be a field",
    ),
    _of(
        *("replicas in quotes", _WORKER, "replicas", "4"),
        f"{_WORKER}.replicas (4) must fit the schema",
    ),
    _of(
        *("a policy that the operator refuses", _WORKER, "restartPolicy", "Always"),
        f"{_WORKER}.restartPolicy (Always) must fit the schema",
    ),
    Planted(
        *("a job too long for its workers", _FOUR, JOB, "metadata", "name", "a" * 55),
        (
            f"MPIJob/{'a' * 55} metadata.name ({'a' * 55}) must have 63 characters",
            f"MPIJob/{'a' * 55} {_LAUNCHES}, launch.listen (minigo-worker-0.minigo:70",
        ),
    ),
    _of(
        *("two launchers", _LAUNCHER, "replicas", 2),
        f"{_LAUNCHER}.replicas (2) must be 1",
    ),
    _of(
        *("a policy in the template", f"{_WORKER}.template.spec"),
        *("restartPolicy", "Never"),
        f"{_WORKER}.template.spec.restartPolicy (Never) must be the replica's",
    ),
    _of(
        *("a launcher without a trace", _LAUNCHER, "restartPolicy", "OnFailure"),
        f"{_LAUNCHER}.restartPolicy (OnFailure) must be Never",
    ),
    _of(
        *("workers that are never there again", _WORKER, "restartPolicy", "Never"),
        f"{_WORKER}.restartPolicy (Never) must be OnFailure",
    ),
    _of(
        *("a job without end", "spec.runPolicy", "activeDeadlineSeconds", None),
        "spec.runPolicy.activeDeadlineSeconds (absent) must be there",
    ),
    _of(
        *("workers that keep their GPUs", "spec.runPolicy", "cleanPodPolicy", "None"),
        "spec.runPolicy.cleanPodPolicy (None) must be Running",
    ),
    _of(
        *("a gang without its launcher", "spec.runPolicy.schedulingPolicy"),
        *("minAvailable", 4),
        "spec.runPolicy.schedulingPolicy.minAvailable (4) must be 5, the workers and",
    ),
    _of(
        *("a launcher before its workers", "spec", "launcherCreationPolicy"),
        "AtStartup",
        "spec.launcherCreationPolicy (AtStartup) must be WaitForWorkersReady",
    ),
    _in(
        *("queue-volcano", "a gang that waits for itself", "spec"),
        *("launcherCreationPolicy", "WaitForWorkersReady"),
        "spec.launcherCreationPolicy (WaitForWorkersReady) must be AtStartup in a",
    ),
    _in(
        *("queue-volcano", "a queue that is not there"),
        *("spec.runPolicy.schedulingPolicy", "queue", "default"),
        "spec.runPolicy.schedulingPolicy[queue] (default) must be a Queue of the ov",
    ),
    _in(
        *("queue-kueue", "a job that an apply stops", "spec.runPolicy"),
        *("suspend", True),
        "spec.runPolicy.suspend (True) must be absent: Kueue sets it",
    ),
    _of(
        *("a job that nobody lets begin", "spec.runPolicy", "suspend", True),
        "spec.runPolicy.suspend (True) must be absent",
    ),
    _of(
        *("a request below the limit", f"{_BOX}.resources"),
        *("requests", {"cpu": "8", "memory": "96Gi", "nvidia.com/gpu": 1}),
        f"{_WORKS}.resources.requests ({{'cpu': '8'",
    ),
    _of(
        *("a worker without a GPU", f"{_BOX}.resources"),
        *("limits", {"cpu": "16", "memory": "96Gi"}),
        f"{_WORKS}.resources.requests ({{'cpu': '16'",
        f"{_WORKER}.template, limits of nvidia.com/gpu (0) must have a GPU",
    ),
    _of(
        *("more ranks than slots", _ARGS, "2", "5"),
        f"{_LAUNCHES}, its mpirun, -n (5) must be 4, the slots of all workers",
    ),
    _of(
        *("a worker without a rank", _ARGS, "2", "3"),
        f"{_LAUNCHES}, its mpirun, -n (3) must be 4, the slots of all workers",
    ),
    _of(
        *("models that meet nobody", _ARGS, "35", "agent.target.opponent="),
        f"{_LAUNCHES}, its target (absent) must be there, or no model is evaluated",
    ),
    _of(
        *("a target that is misspelt", _ARGS, "35"),
        "agent.target.opponent=/runs/minigo-data/targt",
        f"{_LAUNCHES}, agent.target.opponent (/runs/minigo-data/targt) must be what",
    ),
    _of(
        *("a checkpoint of another folder", _ARGS, "37"),
        "learner.initial_model=/runs/data/checkpoint",
        f"{_LAUNCHES}, learner.initial_model (/runs/data/checkpoint) must be what the",
    ),
    _of(
        *("games that nobody makes", _ARGS, "39"),
        "store.imported=/runs/minigo-data/games",
        f"{_LAUNCHES}, store.imported (/runs/minigo-data/games) must be what the data",
    ),
    _of(
        *("GPUs that nobody uses", _ARGS, "23", "cpu"),
        f"{_LAUNCHES}, --devices (cpu) must be cuda:0, as workers have GPUs that wo",
    ),
    _of(
        *("a launcher that ends at once", f"{_LAUNCHER}.template.spec.containers.0"),
        *("env", None),
        f"{_LAUNCHES}.env, LOGS_FOLDER (absent) must be below a claim",
    ),
    _of(
        "what ranks print, beside the disk",
        *(f"{_LAUNCHER}.template.spec.containers.0.env.0", "value", "/logs"),
        f"{_LAUNCHES}.env, LOGS_FOLDER (/logs) must be below a claim",
    ),
    _of(
        *("a new disk that only root writes to", f"{_WORKER}.template.spec"),
        "securityContext",
        {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        f"{_WORKER}.template.spec.securityContext.fsGroup (absent) must be 10001",
    ),
    _of(
        *("a GPU without CUDA", _BOX, "image"),
        "registry.example.com/tengen:0.1.0-ray2.60.0",
        f"{_WORKS}.image (registry.example.com/tengen:0.1.0-ray2.60.0) must be the ima",
    ),
    _of(
        *("ranks that are bound to a core", _ARGS, "6", "core"),
        f"{_LAUNCHES}, its mpirun, --bind-to (core) must be none",
    ),
    _of(
        *("an option that hides what is wrong", _ARGS, "8", "--oversubscribe"),
        f"{_LAUNCHES}, its mpirun (--oversubscribe) must not be there",
    ),
    _of(
        *("fewer workers than learners", _ARGS, "25", "launch.roles.learn.count=4"),
        f"{_LAUNCHES}, its roles (4 ranks) must fit the workers: ranks (4) must be 5",
    ),
    _of(
        *("learners that share a GPU", _ARGS, "27", "launch.roles.learn.num_cpus=8"),
        f"{_LAUNCHES}, its roles (4 ranks) must have a GPU each, and learn, learn-1 s",
    ),
    _of(
        *("smaller workers than a learner", f"{_BOX}.resources.limits", "cpu", "8"),
        f"{_WORKS}.resources.requests.cpu (16) must be at most its limit",
        f"{_WORKS}.resources.requests ({{'cpu': '16'",
        f"{_LAUNCHES}, its roles (4 ranks) must fit the workers: launch.roles.learn",
    ),
    _of(
        *("a learner that no pod reaches", _ARGS, "29"),
        "launch.listen=minigo-worker-1.minigo:7070",
        f"{_LAUNCHES}, launch.listen (minigo-worker-1.minigo:7070) must have the nam",
    ),
    _of(
        *("a certificate that workers have not", _ARGS, "31"),
        "launch.certificate_file=/etc/tls.crt",
        f"{_LAUNCHES}, launch.certificate_file (/etc/tls.crt) must be in a secret",
    ),
    _of(
        *("a run beside the disk", _ARGS, "21", "/results/minigo"),
        f"{_LAUNCHES}, its run directory (/results/minigo, spec.mpiReplicaSpecs.Lau",
        f"{_LAUNCHES}, its run directory (/results/minigo, spec.mpiReplicaSpecs.Wor",
    ),
    _of(
        *("a disk that workers do not mount", f"{_BOX}.volumeMounts.0"),
        *("mountPath", "/pvc"),
        f"{_LAUNCHES}, its run directory (/runs/minigo, spec.mpiReplicaSpecs.Worke",
    ),
    _of(
        *("a worker without time to save", f"{_WORKER}.template.spec"),
        *("terminationGracePeriodSeconds", 30),
        f"{_WORKER}.template.spec.terminationGracePeriodSeconds (30) must be more th",
    ),
    _of(
        *("memory of a worker without end", f"{_WORKER}.template.spec.volumes.2"),
        *("emptyDir", {"medium": "Memory"}),
        f"{_WORKER}.template.spec.volumes[2].emptyDir.sizeLimit (absent) must be the",
    ),
    _of(
        *("a probe of another port", f"{_BOX}.readinessProbe.tcpSocket"),
        *("port", 22),
        f"{_WORKS}.readinessProbe (22) must ask the port of its sshd, 2222",
    ),
    _of(
        *("a port that sshd has not", f"{_BOX}.ports.0", "containerPort", 2223),
        f"{_WORKS}.ports ([2223]) must have that of its sshd, 2222",
        f"{_WORKS}.readinessProbe (ssh) must ask the port of its sshd, 2222",
    ),
    _of(
        *("keys in another folder", "spec", "sshAuthMountPath", "/root/.ssh"),
        f"{_WORKS}, HostKey of the settings of ssh (/etc/tengen/ssh/id_rsa) must be",
        f"{_WORKS}, AuthorizedKeysFile of the settings of ssh (/etc/tengen/ssh/autho",
        f"{_WORKS}, IdentityFile of the settings of ssh (/etc/tengen/ssh/id_rsa) mus",
    ),
    Planted(
        *("a client of another port", _FOUR, SCRIPTS, "data", "ssh_config"),
        "Host *\n  Port 22\n  IdentityFile /etc/tengen/ssh/id_rsa\n",
        (f"MPIJob/minigo {_LAUNCHES}, Port of its ssh_config (22) must be that of t",),
    ),
    Planted(
        *("a port of root's", _FOUR, SCRIPTS, "data", "sshd_config"),
        _SSHD.replace("2222", "22") + _KEYS,
        (f"MPIJob/minigo {_WORKS}, Port of its sshd_config (22) must be 1024 or mor",),
    ),
    _of(
        *("a script that no map has", f"{_BOX}.command"),
        *("3", "/etc/tengen/mpi/work.sh"),
        f"{_WORKS}, its command (/etc/tengen/mpi/work.sh) must be of its map",
    ),
    _of(
        "a wait for what nobody makes",
        f"{_LAUNCHER}.template.spec.initContainers.0.args",
        *("0", "/runs/minigo/READY"),
        f"{_LAUNCHER}.template.spec.initContainers[0].args (/runs/minigo/READY of jo",
    ),
    Planted(
        *("a wait without end", "rayjob-minigo", RAY),
        "spec.rayClusterSpec.headGroupSpec.template.spec.initContainers.0.args",
        *("1", "soon"),
        (
            "RayJob/minigo spec.rayClusterSpec.headGroupSpec.template.spec."
            "initContainers[0].args (soon) must be seconds",
        ),
    ),
]
