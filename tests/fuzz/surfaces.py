"""The files that tengen reads and others may have written, and their readers."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import struct
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from tengen import _core
from tengen.actors import Bandit, Behaviour, Behaviours, EpisodicMemory, Slots
from tengen.config import from_dict, to_dict
from tengen.envs import env_spec
from tengen.errors import UsageError
from tengen.experience import (
    Demonstrations,
    ExperienceWriter,
    Manifest,
    SegmentReader,
    write_demonstrations,
)
from tengen.experience.games.journal import read_journal
from tengen.experience.rows.derived_rows import DerivedRows
from tengen.experience.rows.imported import ImportedRows, write_rows
from tengen.games import open_game
from tengen.games.book import read_book
from tengen.games.sgf import read_sgf, replay
from tengen.katago.network import read_network
from tengen.learners.checkpoint import read_model
from tengen.minigo.import_command import read_examples, side_of
from tengen.minigo.tensors import Checkpoint, FrozenGraph
from tengen.minigo.weights import read_weights
from tengen.models import load_model
from tengen.observe.curves.table import read_curve
from tengen.observe.status import read_status
from tengen.overrides import override
from tengen.report.write import write_report
from tengen.roles import RunConfig, read_config
from tengen.run import RunDirectory, find_files
from tengen.run.mirrors import MirrorRecord, read_mirrors, write_mirror
from tengen.serve.catalog import Catalog
from tengen.serve.kept import Source, read_source, replayed, sources
from tengen.serve.runs_api import Watch
from tengen.serve.shown import run_page, summary
from tengen.store import Column, Store, TableConfig
from tengen.store.configs.store_config import StoreConfig
from tests.configs import new_config
from tests.fuzz.reading import Surface, every
from tests.oracle.katago_files import tiny_network
from tests.unit.minigo.golden import GAME, GRAPH, PREFIX
from tests.unit.serve.made_runs import (
    add_experience,
    add_matches,
    make_environment_run,
    write_events,
)

GOLDEN = Path(__file__).parents[1] / "golden"
TASK = "connect4"


def _make_katago(folder: Path) -> None:
    network = tiny_network(15, blocks=(["gpool"],), channels=3)
    (folder / "a.bin").write_bytes(bytes(network.data))
    (folder / "b.bin.gz").write_bytes(gzip.compress(bytes(network.data), 1))
    text = tiny_network(10, is_binary=False, channels=3)
    (folder / "c.txt").write_bytes(bytes(text.data))


def _use_katago(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        read_network(path)


def _pack_katago(folder: Path, name: str) -> None:
    """Compresses a changed network, so that gzip's checksum is right."""
    if name == "a.bin":
        data = (folder / name).read_bytes()
        (folder / "b.bin.gz").write_bytes(gzip.compress(data, 1))


def _make_checkpoint(folder: Path) -> None:
    for path in PREFIX.parent.glob(f"{PREFIX.name}.*"):
        shutil.copy(path, folder)
    shutil.copy(GRAPH, folder)


def _use_checkpoint(folder: Path) -> None:
    read_weights(Checkpoint(folder / PREFIX.name))
    read_weights(FrozenGraph(folder / GRAPH.name))


def _masked(data: bytes) -> bytes:
    crc = int(_core.crc32c(data))
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return struct.pack("<I", masked)


def _repair_index(folder: Path, name: str) -> None:
    """Updates the checksums of the index's blocks to match their bytes."""
    path = folder / f"{PREFIX.name}.index"
    data = bytearray(path.read_bytes())
    # The last block ends right before the footer of 48 bytes.
    from tengen.minigo.wire import read_varint

    footer = memoryview(data)[-48:]
    place = 0
    for _ in range(2):
        _, place = read_varint(footer, place)
    handles = [bytes(footer[place:])]
    first, place = read_varint(footer, 0)
    size, _ = read_varint(footer, place)
    blocks = [(first, size), (0, first - 5)]
    offset, at = read_varint(memoryview(handles[0]), 0)
    size, _ = read_varint(memoryview(handles[0]), at)
    blocks.append((offset, size))
    footer.release()
    for offset, size in blocks:
        end = offset + size
        if 0 <= offset <= end < len(data) - 5:
            data[end + 1 : end + 5] = _masked(bytes(data[offset : end + 1]))
    path.write_bytes(data)


def _make_examples(folder: Path) -> None:
    shutil.copy(GAME, folder / "game.tfrecord.zz")
    (folder / "record.bin").write_bytes(_first_record())


def _first_record() -> bytes:
    data = zlib.decompress(GAME.read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    return data[12 : 12 + length]


def _frame_record(folder: Path, name: str) -> None:
    """Frames the changed record as a file of examples with valid checksums."""
    record = (folder / "record.bin").read_bytes()
    length = struct.pack("<Q", len(record))
    framed = length + _masked(length) + record + _masked(record)
    (folder / "game.tfrecord.zz").write_bytes(zlib.compress(framed, 1))


def _use_examples(folder: Path) -> None:
    path = folder / "game.tfrecord.zz"
    side_of(path)
    read_examples(path, 5, "nchw")


def _make_rows(folder: Path) -> None:
    write_rows(folder / "000004.rows.npz", [read_examples(GAME, 5, "nchw")], 5, 4, "x")


def _use_rows(folder: Path) -> None:
    rows = ImportedRows(folder / "000004.rows.npz")
    which = np.arange(min(rows.num_rows, 4))
    rows.columns(which, np.zeros(len(which), np.uint8))


def _golden_run(folder: Path) -> Path:
    with tarfile.open(GOLDEN / "runs" / "schema_1.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "schema_1"


def _make_run(folder: Path) -> None:
    """Writes a trained run of games with events, and a run of an environment."""
    run = RunDirectory.open(_golden_run(folder))
    run = RunDirectory.create_or_resume(run.path)
    write_events(run, range(1, 4)).close()
    add_experience(run, "tictactoe")
    add_matches(run, "tictactoe")
    make_environment_run(folder / "CartPole", 1)
    record = MirrorRecord(
        mirror="a" * 32,
        role="selfplay",
        index=0,
        process="1 on b",
        incarnation=1,
        events=1,
        is_away=False,
    )
    write_mirror(run, record)


def _use_run(folder: Path) -> None:
    """Reads a run as ``tengen status``, ``report`` and ``serve`` do."""
    games = RunDirectory(folder / "schema_1")
    every(
        lambda: read_config(games),
        *(
            look
            for run in (games, RunDirectory(folder / "CartPole"))
            for look in (
                lambda run=run: json.dumps(read_status(run)),
                lambda run=run: _serve_run(run),
                lambda run=run: read_curve(run),
                lambda run=run: write_report(run.path),
                lambda run=run: read_mirrors(run),
            )
        ),
    )


def _serve_run(run: RunDirectory) -> None:
    catalog = Catalog([], run.path.parent)
    assert len(catalog.runs()) >= 1
    with Watch(run, 0.0).look() as (status, view):
        json.dumps([summary(status, view), run_page({"id": "run"}, status, view)])
    every(*(lambda source=source: _serve_source(source) for source in sources(run)))


def _serve_source(source: Source) -> None:
    for kept in read_source(source):
        game = open_game(kept.variant or "tictactoe")
        json.dumps(replayed(game, kept))


def _use_model(folder: Path) -> None:
    from tengen.play import load

    model = folder / "schema_1" / "models" / "000001"
    load_model(model)
    with load(model) as player:
        player.choose([], simulations=2)


def _make_model(folder: Path) -> None:
    _golden_run(folder)
    shutil.rmtree(folder / "schema_1" / "experience")


def _repair_model(folder: Path, name: str) -> None:
    """Updates the hashes of a model and of a checkpoint to match their files."""
    meta = folder / "schema_1" / "models" / "000001" / "meta.json"
    content = json.loads(meta.read_bytes())
    for file in content["sha256"]:
        data = (meta.parent / file).read_bytes()
        content["sha256"][file] = hashlib.sha256(data).hexdigest()
    meta.write_text(json.dumps(content))


def _make_learner(folder: Path) -> None:
    shutil.copytree(
        _golden_run(folder) / "checkpoints" / "000001", folder / "checkpoint"
    )
    shutil.rmtree(folder / "schema_1")


def _use_learner(folder: Path) -> None:
    saved = read_model(folder / "checkpoint")
    extra = saved.extra
    if isinstance(extra, dict) and "manifest" in extra:
        Manifest.from_dict(folder, extra["manifest"])


def _repair_learner(folder: Path, name: str) -> None:
    path = folder / "checkpoint" / "state.json"
    content = json.loads(path.read_bytes())
    content.pop("json_sha256", None)
    tensors = (path.parent / "state.safetensors").read_bytes()
    content["sha256"] = hashlib.sha256(tensors).hexdigest()
    text = json.dumps(content, sort_keys=True).encode()
    content["json_sha256"] = hashlib.sha256(text).hexdigest()
    path.write_text(json.dumps(content))


def _make_segment(folder: Path) -> None:
    run = RunDirectory.create_or_resume(folder / "run")
    add_experience(run, TASK, num_games=2)


def _use_segment(folder: Path) -> None:
    experience = folder / "run" / "experience"
    for path in find_files(experience, "*/*/*.npz"):
        with SegmentReader(path) as reader:
            columns = reader.game_columns()
        rows = DerivedRows(TASK, auxiliary=True)
        num_rows = rows.add(columns)
        batch = rows.derive(np.arange(num_rows), np.zeros(num_rows, np.uint8))
        assert all(np.isfinite(column).all() for column in batch.values())
    for path in find_files(experience, "*/*/*.journal"):
        for frame in read_journal(path).frames:
            _core.decode_game(frame)
    manifest = Manifest(experience)
    manifest.append(manifest.discover())
    Manifest.from_dict(experience, json.loads(json.dumps(manifest.to_dict())))
    with ExperienceWriter(experience / "selfplay-0", 2) as writer:
        writer.seal(2)


STEP = {"x": Column(dtype="int64", shape=(3,)), "y": Column(dtype="float32")}
TABLES = (TableConfig(name="t", columns=STEP, max_items=50, steps_per_chunk=4),)


def _open_store(folder: Path) -> Store:
    return Store(
        StoreConfig.of(
            TABLES,
            memory_bytes=1 << 16,
            disk_bytes=1 << 20,
            disk_directory=folder / "disk",
            durability="async",
            durability_ms=10.0,
        )
    )


def _make_store(folder: Path) -> None:
    with _open_store(folder) as store, store.writer("w", "t") as writer:
        for number in range(24):
            writer.append({"x": np.full(3, number), "y": np.float32(number)})
            writer.insert("t", 1)
        writer.flush()
        store.checkpoint()


def _use_store(folder: Path) -> None:
    with _open_store(folder) as store:
        table = store.table("t")
        if table.describe()["num_items"] > 0:
            table.sample(2, timeout_s=5.0).ack()


def _make_texts(folder: Path) -> None:
    (folder / "game.sgf").write_text(
        "(;GM[1]FF[4]CA[UTF-8]SZ[9]KM[5.5]RU[Chinese]PB[a \\] b]PW[c]HA[2]AB[cc][gg]"
        "RE[B+3.5];W[ee]C[x];B[fe](;W[ef];B[ff];W[])(;W[aa]))"
    )
    (folder / "book.json").write_text(
        json.dumps(
            {"schema": 1, "task": TASK, "openings": [{"moves": [0, 1]}, {"moves": [3]}]}
        )
    )
    (folder / "store.toml").write_text(
        "memory_bytes = 1000000\n[tables.replay]\nmax_items = 100\nsampler = "
        '{kind = "prioritized"}\n[tables.replay.columns.x]\ndtype = "float32"\n'
        "shape = [4]\n"
    )
    (folder / "store.json").write_text(
        json.dumps(
            {
                "memory_bytes": 1000,
                "tables": {
                    "a": {
                        "columns": {"x": {"dtype": "int64", "shape": [2]}},
                        "limits": {"samples_per_insert": 4.0},
                    }
                },
            }
        )
    )


def _use_texts(folder: Path) -> None:
    game = open_game(TASK)
    every(
        lambda: replay(read_sgf((folder / "game.sgf").read_bytes(), main_line=True)),
        lambda: read_book(folder / "book.json", game),
        lambda: StoreConfig.read(folder / "store.toml"),
        lambda: StoreConfig.read(folder / "store.json"),
    )


def _make_config(folder: Path) -> None:
    """Writes the config of each agent as in run.json, and typed settings."""
    for task in (TASK, "go/5", "CartPole-v1"):
        name = task.replace("/", "_")
        config = to_dict(new_config(task))
        (folder / f"config-{name}.json").write_text(json.dumps(config))
    (folder / "set.json").write_text(
        json.dumps(["net.num_blocks=3", "agent.actor.full_simulations=9", "seed=1"])
    )


def _use_config(folder: Path) -> None:
    def read(path: Path) -> Any:
        try:
            return json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            raise UsageError("it is not JSON") from None

    every(
        *(
            lambda path=path: from_dict(RunConfig, read(path), path.name)
            for path in sorted(folder.glob("config-*.json"))
        )
    )
    config = new_config(TASK)
    settings = read(folder / "set.json")
    typed = [str(one) for one in settings] if isinstance(settings, list) else []
    every(*(lambda one=one: override(config, [one]) for one in typed))


def _behaviours(folder: Path) -> Behaviours:
    return Behaviours(folder / "behaviour-0.json", 0.0)


def _bandits() -> Behaviour:
    bandits = Bandit(Slots(0, 2, 2), 3, window=4, epsilon=0.5, seed=1)
    return Behaviour(bandits, EpisodicMemory(2, 8, 2), 2, 3)


def _make_behaviours(folder: Path) -> None:
    made, kept = _bandits(), _behaviours(folder)
    kept.add(made)
    made.begin()
    for step in range(10):
        made.step(np.ones(2, np.float32), np.array([step % 3 == 0, step % 4 == 0]))
    kept.save()


def _use_behaviours(folder: Path) -> None:
    read, kept = _bandits(), _behaviours(folder)
    kept.add(read)
    read.begin()
    read.step(np.ones(2, np.float32), np.ones(2, np.bool_))
    kept.save()


def _make_demos(folder: Path) -> None:
    spec = env_spec("CartPole-v1")
    episode = {
        "observation": np.ones((4, 4), np.float32),
        "action": np.zeros(3, np.int64),
        "reward": np.ones(3, np.float32),
        "terminated": np.arange(3) == 2,
        "truncated": np.zeros(3, np.bool_),
    }

    def record(add: Any) -> None:
        for _ in range(2):
            add(episode)

    write_demonstrations(folder / "demos", spec, record, source="fuzz")


def _use_demos(folder: Path) -> None:
    demos = Demonstrations(folder / "demos")
    demos.check_fits(env_spec("CartPole-v1"))
    for _ in demos:
        pass


SURFACES = (
    Surface("demos", _make_demos, _use_demos, 200),
    Surface("katago", _make_katago, _use_katago, 100, _pack_katago),
    Surface("minigo_checkpoint", _make_checkpoint, _use_checkpoint, 80, _repair_index),
    Surface("minigo_examples", _make_examples, _use_examples, 200, _frame_record),
    Surface("minigo_rows", _make_rows, _use_rows, 150),
    Surface("run", _make_run, _use_run, 20, names=("*.json*", "*.sgf", "*.npz")),
    Surface("model", _make_model, _use_model, 20, _repair_model, ("models/000001/*",)),
    Surface("learner", _make_learner, _use_learner, 100, _repair_learner),
    Surface("segment", _make_segment, _use_segment, 60),
    Surface("store", _make_store, _use_store, 12),
    Surface("texts", _make_texts, _use_texts, 200),
    Surface("config", _make_config, _use_config, 40),
    Surface("behaviours", _make_behaviours, _use_behaviours, 100),
)
