"""Creates a bundled player from a run's newest model: its files and its manifest.

    python scripts/bundle_player.py runs/go/9 "tengen train go/9 --minutes 30"

Writes ``src/tengen/bundled/players/go-9``: the model in half precision (in full, if the
core evaluates its network) without its int8 graph, and ``player.json``. Strength and
levels are empty there until ``benchmarks/strength/player_strength.py`` measures them.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from safetensors.numpy import save

from tengen import bundled
from tengen.bundled.players import FOLDER, MANIFEST_FILE
from tengen.cli import parse_command
from tengen.config import to_dict
from tengen.models import ModelDir, ModelExporter, resolve_model
from tengen.models.load import META_FILE, ONNX_FILE, WEIGHTS_FILE, read_weights
from tengen.nets import NetConfig
from tengen.run import RunDirectory
from tengen.search import PlayConfig


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", metavar="RUN", type=Path)
    parser.add_argument("command", metavar="COMMAND", help="what trained it")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    args = parser.parse_args()
    print(bundle(args.run, args.command, args.folder))


def bundle(path: Path, command: str, folder: Path) -> Path:
    """Writes a run's newest model as a bundled player; returns its folder.

    Args:
        path: The run.
        command: The command that trained the run, beginning with ``tengen train``.
        folder: The folder of all bundled players.
    """
    run, model = RunDirectory.open(path), resolve_model(path)
    task = model.meta.task
    row, typed = parse_command(command.split(" && ")[0].split()[1:])
    is_its = (row.name, typed.task) == ("train", task)
    assert is_its, f"{command} does not train {task}"
    files = model_files(model)
    # Delete the previous player only now that the new files exist.
    final = folder / task.replace("/", "-")
    shutil.rmtree(final, ignore_errors=True)
    final.mkdir(parents=True)
    for name, data in files.items():
        (final / name).write_bytes(data)
    origin = model.meta.origin
    manifest = bundled.Manifest(
        name=task,
        task=task,
        net=net_name(model.meta.net),
        recipe=str(run.read_run()["config"]["recipe"]),
        command=command,
        commit=commit_of(run),
        games=origin.num_games if origin and origin.num_games else 0,
        cpu_seconds=cpu_seconds(run),
        num_bytes=sum(len(data) for data in files.values()),
        sha256={name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    )
    write_manifest(final, manifest)
    return final


def model_files(model: ModelDir) -> dict[str, bytes]:
    """Returns a model's files in half precision, by name."""
    net, signature = model.meta.net, model.meta.signature
    weights = read_weights(model.path)
    if net.is_native:
        # The core reads float32, and a table's weights are few.
        files = {WEIGHTS_FILE: save(weights)}
    else:
        tensors = {name: halved(tensor) for name, tensor in weights.items()}
        whole = {
            name: t.astype(np.float32) if t.dtype == np.float16 else t
            for name, t in tensors.items()
        }
        graph = ModelExporter().export(signature, net, whole)
        files = {WEIGHTS_FILE: save(tensors), ONNX_FILE: half_graph(graph)}
    # fp32 gives the same results on any machine; int8 would need its own graph.
    play = dataclasses.replace(model.meta.play or PlayConfig(), precision="fp32")
    origin = model.meta.origin
    meta = dataclasses.replace(
        model.meta,
        origin=origin and dataclasses.replace(origin, run=f"runs/{model.meta.task}"),
        play=play,
        sha256={name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    )
    files[META_FILE] = (json.dumps(to_dict(meta), indent=2) + "\n").encode()
    return files


def halved(tensor: np.ndarray) -> np.ndarray:
    """Returns a tensor in half precision if its type is float32."""
    if tensor.dtype != np.float32:
        return np.ascontiguousarray(tensor)
    with np.errstate(over="ignore"):
        half = np.ascontiguousarray(tensor.astype(np.float16))
    assert np.isfinite(half).all(), "a weight is beyond half precision"
    return half


def half_graph(data: bytes) -> bytes:
    """Returns a graph that stores its weights as float16 and casts them to float32.

    The backend removes the casts when it compiles the graph (constant folding).
    """
    proto = onnx.load_model_from_string(data)
    casts = []
    for item in proto.graph.initializer:
        if item.data_type != onnx.TensorProto.FLOAT:
            continue
        half = onnx.numpy_helper.to_array(item).astype(np.float16)
        name = item.name
        item.CopyFrom(onnx.numpy_helper.from_array(half, f"{name}.half"))
        casts.append(
            onnx.helper.make_node(
                "Cast", [f"{name}.half"], [name], to=onnx.TensorProto.FLOAT
            )
        )
    nodes = [*casts, *proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    return bytes(proto.SerializeToString())


def net_name(net: NetConfig) -> str:
    """Returns a network's size as ``2x32``, or ``lines 64`` if it has no blocks."""
    fields = to_dict(net)
    if "num_blocks" not in fields:
        return f"{net.kind} {fields['num_channels']}"
    return f"{fields['num_blocks']}x{fields['num_channels']}"


def commit_of(run: RunDirectory) -> str:
    """Returns the commit of the code that trained a run, from ``code.txt``."""
    for line in (run.path / "code.txt").read_text().splitlines():
        key, _, value = line.partition(": ")
        if key == "commit":
            return value.strip()
    return "unknown"


def cpu_seconds(run: RunDirectory) -> float:
    """Returns the CPU-seconds of all of a run's calls."""
    most = []
    for path in sorted((run.path / "events").glob("train-*.jsonl")):
        events = [json.loads(line) for line in path.read_text().splitlines()]
        most.append(max((event.get("cpu_s", 0.0) for event in events), default=0.0))
    return round(sum(most), 1)


def write_manifest(folder: Path, manifest: bundled.Manifest) -> None:
    """Writes ``player.json`` into a player's folder."""
    text = json.dumps(to_dict(manifest), indent=2) + "\n"
    (folder / MANIFEST_FILE).write_text(text)


if __name__ == "__main__":
    main()
