"""The experience store: journals, sealed segments and the tables over them.

::

    writer = ExperienceWriter(run.experience / "selfplay-0", incarnation)
    segment = writer.open_games(generation, "gomoku/9")  # durable by the game
    engine.play(segment.sink)
    segment.close()
    writer.seal(generation)                 # a zip of .npy columns

    window = GameWindow("gomoku/9", run.experience, WindowConfig(), seed)
    window.refresh()
    while window.samples_available() >= 256:
        batch = window.sample(256)
        learner.step(batch.columns)
        batch.ack()
"""

from tengen.store.items import ColumnSpec, ItemSchema
from tengen.store.journal import JournalGap, OpenSegment
from tengen.store.limiter import SamplesPerInsert, SamplesPerInsertConfig
from tengen.store.manifest import Manifest, SegmentEntry
from tengen.store.positions import sample_positions
from tengen.store.queue import QueueConfig, UnrollQueue
from tengen.store.segment import SegmentReader
from tengen.store.table import Batch, Table
from tengen.store.window import GameWindow
from tengen.store.window_config import WindowConfig
from tengen.store.writer import ExperienceWriter

__all__ = [
    "Batch",
    "ColumnSpec",
    "ExperienceWriter",
    "GameWindow",
    "ItemSchema",
    "JournalGap",
    "Manifest",
    "OpenSegment",
    "QueueConfig",
    "SamplesPerInsert",
    "SamplesPerInsertConfig",
    "SegmentEntry",
    "SegmentReader",
    "Table",
    "UnrollQueue",
    "WindowConfig",
    "sample_positions",
]
