"""Plain Jobs: Go 9x9 with one container per role, and minigo's data."""

from __future__ import annotations

from typing import Any

from scripts.manifests import table
from scripts.manifests.pods import (
    TINI,
    Object,
    container,
    made,
    sized,
    template,
    volumes,
)
from scripts.manifests.table import GO9, MOUNTS, SIZES

_WORKS = ("runs", "scratch", "shared-memory")
_ENDS = {"activeDeadlineSeconds": 1209600, "ttlSecondsAfterFinished": 86400}
_WAIT = f"""\
seconds=0
until [ -f {GO9}/run.json ]; do
  if [ "$seconds" -ge 600 ]; then
    echo "run ({GO9}) must be there after 600 s; start go9-learner" >&2
    exit 1
  fi
  echo "waits for {GO9}/run.json, $seconds s of 600"
  sleep 10
  seconds=$((seconds + 10))
done
"""


def _job(name: str, pod: Object, **spec: Any) -> Object:
    return made("Job", name, "batch/v1", spec={**spec, "template": pod})


def _role(name: str, *args: str, names: tuple[str, ...] = _WORKS) -> Object:
    return container(name, sized(SIZES[f"job-{name}"]), names, args=list(args))


def learner() -> Object:
    """Returns the Job that creates the run and has all roles except self-play."""
    words = ("train", "go/9", "--out", GO9, "--games", "0")
    makes = _role(
        "make-run", *words, "--minutes", str(table.MINUTES), names=("runs", "scratch")
    )
    roles = [_role(name, name, GO9) for name in ("learn", "export", "gate")]
    sizes = table.Size("", "", "1Gi")
    pod = template(
        "go9-learner",
        roles,
        volumes(_WORKS, sizes, {}),
        restartPolicy="OnFailure",
        initContainers=[makes],
    )
    return _job(
        "go9-learner",
        pod,
        **{"# A run has one learner; a second one refuses to begin.": None},
        parallelism=1,
        completions=1,
        **{"# Containers that were started again count.": None},
        backoffLimit=30,
        **_ENDS,
    )


def selfplay() -> Object:
    """Returns the self-play Job, which can have any number of pods."""

    def on_exit(action: str, code: int) -> Object:
        codes = {"containerName": "selfplay", "operator": "In", "values": [code]}
        return {"action": action, "onExitCodes": codes}

    drained = {"type": "DisruptionTarget", "status": "True"}
    rules = [
        # Pods that are drained or stopped (exit code 130) do not count as failures.
        {"action": "Ignore", "onPodConditions": [drained]},
        on_exit("Ignore", 130),
        # Exit code 2 is a usage or configuration error, which a new pod would repeat.
        on_exit("FailJob", 2),
    ]
    waits = container(
        "wait-for-run",
        sized(table.WAITS),
        ("runs", "scratch"),
        command=[*TINI, "sh", "-c", _WAIT],
    )
    pod = template(
        "go9-selfplay",
        [_role("selfplay", "selfplay", GO9)],
        volumes(_WORKS, SIZES["job-selfplay"], {}),
        restartPolicy="Never",
        initContainers=[waits],
    )
    return _job(
        "go9-selfplay",
        pod,
        parallelism=4,
        backoffLimit=100,
        **_ENDS,
        podReplacementPolicy="Failed",
        podFailurePolicy={"rules": rules},
    )


def data() -> Object:
    """Returns the Job that downloads the benchmark's data."""
    names = (*_WORKS, "data-scripts")
    size = SIZES["minigo-data"]
    box = container(
        "data",
        sized(size),
        names,
        command=[*TINI, "bash", f"{MOUNTS['data-scripts']}/fetch.sh"],
        args=[table.DATA],
    )
    pod_volumes = volumes(names, size, {"data-scripts": "minigo-data"})
    pod = template("minigo-data", [box], pod_volumes, restartPolicy="OnFailure")
    return _job(
        "minigo-data",
        pod,
        parallelism=1,
        completions=1,
        **{"# A fetch that breaks off goes on where it was.": None},
        backoffLimit=6,
        activeDeadlineSeconds=table.DATA_WAIT_S,
        ttlSecondsAfterFinished=86400,
    )
