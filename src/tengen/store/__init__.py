"""The experience store: journals, sealed segments and the tables over them.

`Store` is a replay store of its own, in memory, for one process or all of a host; see
`docs/store.md`. The loop's tables, made of segments:

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

from tengen.store.batch import Batch, ExperienceTable
from tengen.store.journal import JournalGap, OpenSegment
from tengen.store.limiter import SamplesPerInsert, SamplesPerInsertConfig
from tengen.store.manifest import Manifest, SegmentEntry
from tengen.store.positions import sample_positions
from tengen.store.queue import QueueConfig, UnrollQueue
from tengen.store.rate_limits import RateLimits
from tengen.store.replica import Replica
from tengen.store.sampler import Sampler
from tengen.store.segment import SegmentReader
from tengen.store.shuffled_files import ShuffledTurn
from tengen.store.shuffled_rows import ShuffledRows
from tengen.store.shuffler import NUM_VALIDATION_ROWS, Shuffler, ShufflingStopped
from tengen.store.step_writer import StepWriter
from tengen.store.store import Store
from tengen.store.store_config import StoreConfig
from tengen.store.table import Table
from tengen.store.table_config import Column, Selector, TableConfig
from tengen.store.waiting import StoreTimeout
from tengen.store.window import GameWindow
from tengen.store.window_config import WindowConfig
from tengen.store.window_memory import check_window_memory, predicted_window_bytes
from tengen.store.writer import ExperienceWriter

__all__ = [
    "NUM_VALIDATION_ROWS",
    "Batch",
    "Column",
    "ExperienceTable",
    "ExperienceWriter",
    "GameWindow",
    "JournalGap",
    "Manifest",
    "OpenSegment",
    "QueueConfig",
    "RateLimits",
    "Replica",
    "Sampler",
    "SamplesPerInsert",
    "SamplesPerInsertConfig",
    "SegmentEntry",
    "SegmentReader",
    "Selector",
    "ShuffledRows",
    "ShuffledTurn",
    "Shuffler",
    "ShufflingStopped",
    "StepWriter",
    "Store",
    "StoreConfig",
    "StoreTimeout",
    "Table",
    "TableConfig",
    "UnrollQueue",
    "WindowConfig",
    "check_window_memory",
    "predicted_window_bytes",
    "sample_positions",
]
