"""The MPIJobs of MLPerf minigo: one rank per worker, and a launcher that runs mpirun.

The ranks' roles are in the table of docs/howto/machines/launch_mpi.md. Rank 0, on
worker 0, is the runner and has the leading learner, export and gate. No process
requests a GPU, so each sees the one GPU of its pod. Export needs the GPU too, because
it compares a model with the learner's weights on the device on which the model plays.
"""

from __future__ import annotations

from scripts.manifests import table
from scripts.manifests.pods import (
    TINI,
    Object,
    container,
    made,
    settings,
    sized,
    template,
    volumes,
    waits_for_data,
)
from scripts.manifests.table import DATA, MINIGO, MOUNTS, PORTS, SIZES

_SOURCES = {"mpi": "minigo-mpi", "data-scripts": "minigo-data", "tls": "minigo-tls"}
_LEARN_CORES = 3 * int(SIZES["minigo-worker"].cpu) // 4
"""More than half of a worker's cores, so that learners do not share a worker's GPU.

A learning worker does not play. On its remaining cores, the many concurrent games that
fill a GPU would outlast the models with which they began.
"""


def job(num_workers: int) -> Object:
    """Returns an MPIJob with ``num_workers`` workers; half of them learn."""
    policy = {
        "# Workers go when the launcher has ended; what matters is on the disk.": None,
        "cleanPodPolicy": "Running",
        "# Each is a new pod of the launcher, which resumes the run.": None,
        "backoffLimit": 6,
        "activeDeadlineSeconds": 2 * 86400,
        "# The launcher's pods, with what they printed, stay for a week.": None,
        "ttlSecondsAfterFinished": 7 * 86400,
        "schedulingPolicy": {
            "# For a queue that begins all pods or none: workers and launcher.": None,
            "minAvailable": num_workers + 1,
        },
    }
    launcher = {
        "replicas": 1,
        "# A pod that failed stays, with its log, and the next one is another.": None,
        "restartPolicy": "Never",
        "template": _launcher(num_workers),
    }
    worker = {
        "replicas": num_workers,
        "# A container that dies is started again in its pod, and the operator": None,
        "# makes a lost pod again. The launcher's next try finds them.": None,
        "restartPolicy": "OnFailure",
        "template": _worker(),
    }
    spec = {
        "slotsPerWorker": 1,
        "mpiImplementation": "OpenMPI",
        "# The operator mounts the key of the job there; its files are root's.": None,
        "sshAuthMountPath": "/etc/tengen/ssh",
        "# Ready is a worker whose sshd answers.": None,
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runPolicy": policy,
        "mpiReplicaSpecs": {"Launcher": launcher, "Worker": worker},
    }
    return made("MPIJob", "minigo", "kubeflow.org/v2beta1", spec=spec)


def _launcher(num_workers: int) -> Object:
    names, size = ("runs", "scratch", "mpi"), SIZES["minigo-launcher"]
    mpirun = ["mpirun", "-n", str(num_workers), "--map-by", "slot", "--bind-to", "none"]
    mpirun += ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp"]
    train = ["tengen", "train", "go/19", "--recipe", "mlperf_minigo", "--launch", "mpi"]
    train += ["--out", MINIGO, "--devices", "cuda:0"]
    train += settings(
        {
            "launch.roles.learn.count": num_workers // 2,
            "launch.roles.learn.num_cpus": _LEARN_CORES,
            "launch.listen": f"minigo-worker-0.minigo:{PORTS['table']}",
            "launch.certificate_file": f"{MOUNTS['tls']}/tls.crt",
            "launch.key_file": f"{MOUNTS['tls']}/tls.key",
            "agent.target.opponent": f"{DATA}/target",
            "learner.initial_model": f"{DATA}/checkpoint",
            "store.imported": f"{DATA}/examples",
        }
    )
    box = container(
        "launcher",
        sized(size),
        names,
        command=[*TINI, "bash", f"{MOUNTS['mpi']}/launcher.sh"],
        args=mpirun + train,
        # launcher.sh writes the ranks' output there.
        env=[{"name": "LOGS_FOLDER", "value": f"{MINIGO}-mpirun"}],
    )
    pod_volumes = volumes((*names, "data-scripts"), size, _SOURCES)
    waits = [waits_for_data()]
    return template("minigo-launcher", [box], pod_volumes, initContainers=waits)


def _worker() -> Object:
    names, size = (
        ("runs", "scratch", "shared-memory", "mpi", "tls"),
        SIZES["minigo-worker"],
    )
    probe = {"tcpSocket": {"port": "ssh"}, "periodSeconds": 5, "timeoutSeconds": 5}
    box = container(
        "worker",
        sized(size),
        names,
        image=table.CUDA_IMAGE,
        ports=["ssh"],
        command=[*TINI, "bash", f"{MOUNTS['mpi']}/worker.sh"],
        readinessProbe=probe,
    )
    # In MiB, a label of NVIDIA's GPU feature discovery. Only a preference, so that any
    # node with a GPU is accepted if the discovery does not run.
    memory = {"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["19000"]}
    prefers = {"weight": 100, "preference": {"matchExpressions": [memory]}}
    nodes = {"preferredDuringSchedulingIgnoredDuringExecution": [prefers]}
    pod_volumes = volumes(names, size, _SOURCES)
    affinity = {"nodeAffinity": nodes}
    return template("minigo-worker", [box], pod_volumes, affinity=affinity)
