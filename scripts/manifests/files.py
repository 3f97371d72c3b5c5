"""The files of deploy/k8s that are generated from the table, and their text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from scripts.manifests import jobs, mpi, ray
from scripts.manifests.pods import Object
from scripts.manifests.table import K8S, MPI_WORKERS

_WIDTH = 88
_MADE = "Generated from scripts/manifests by scripts/check_manifests.py --write."
_LEARNER = """\
One pod: it makes the run if there is none, then learns, exports and gates until
"tengen stop /runs/go9". A container that dies is started again where it stopped.
"""
_SELFPLAY = """\
Elastic: kubectl patch job go9-selfplay -p '{"spec":{"parallelism":16}}' starts or ends
pods at any time, up to 1024. Each pod takes a writer of the run that is free and plays
until "tengen stop /runs/go9". One that is lost costs no finished game.
"""
_DATA = """\
Once for a disk: it fetches some 2.6 GB and imports them, and ends at once where that
was done. What needs the data waits for /runs/minigo-data/READY (wait.sh).
"""
_ATARI = """\
Trains on the cluster of raycluster.yaml. Deleted and applied again it resumes the run.
"""
_GO9 = """\
Every role names its cores: it has as many threads, and Ray keeps them for it. The "GPU"
of the learner's group is no device: it is the name by which the learner finds its pod.
"""
_MINIGO = """\
One pod learns on its GPU, and four play on processors. Every role names its cores: it
has as many threads, and Ray keeps them for it. See docs/howto/train/mlperf.md.
"""
_CLUSTER = """\
A cluster that stays. Its group of actors grows while actors of a run wait for cores and
shrinks when they are idle. The two "GPUs" of the learner's group are no devices: they
keep the learner and inference on one pod.
"""
_MPI = """\
One rank on each worker: half of them learn, half play, each with a GPU of its own. See
docs/howto/train/mlperf.md, "Who does what".
"""


def file_texts() -> dict[Path, str]:
    """Returns the text of each file."""
    overlays = K8S / "overlays"
    atari, plain = overlays / "raycluster-atari", overlays / "jobs-selfplay"
    made = {
        K8S / "minigo" / "data" / "job.yaml": _text(jobs.data(), _DATA),
        plain / "learner.yaml": _text(jobs.learner(), _LEARNER),
        plain / "selfplay.yaml": _text(jobs.selfplay(), _SELFPLAY),
        overlays / "rayjob-go9" / "rayjob.yaml": _text(ray.go9(), _GO9),
        overlays / "rayjob-minigo" / "rayjob.yaml": _text(ray.minigo(), _MINIGO),
        atari / "job.yaml": _text(ray.atari_job(), _ATARI),
        atari / "raycluster.yaml": _text(ray.atari_cluster(), _CLUSTER),
        atari / "service.yaml": _text(ray.atari_service()),
    }
    for name, num_workers in MPI_WORKERS.items():
        made[overlays / name / "mpijob.yaml"] = _text(mpi.job(num_workers), _MPI)
    return made


def _text(content: Object, head: str = "") -> str:
    lines = [f"# {line}\n" for line in (head + _MADE).splitlines()]
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=_WIDTH)
    comment = re.compile(r"(?m)^( *)(['\"])(# .*)\2: null$")
    text = comment.sub(lambda found: found[1] + found[3].replace("''", "'"), text)
    return "".join(lines) + text


class _Dumper(yaml.SafeDumper):
    """A YAML dumper with literal blocks, indented lists and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    if isinstance(text, ray.Folded):
        style = ">"
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=style)


for _kind in (str, ray.Folded):
    _Dumper.add_representer(_kind, _string)
