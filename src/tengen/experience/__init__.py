"""Experience as learners draw it: windows of games, shuffled shards, tables of steps.

::

    writer = ExperienceWriter(run.experience / "selfplay-0", incarnation)
    segment = writer.open_games(generation, "gomoku/9")  # durable by the game
    engine.play(segment.sink)
    segment.close()
    writer.seal(generation)                 # a zip of .npy columns

    window = GameWindow("gomoku/9", run.experience, WindowConfig(), seed)
    window.refresh()
    while window.available() >= 256:
        batch = window.sample(256)
        learner.step(batch.columns)
        batch.ack()
"""

from tengen.experience.config import ExperienceConfig
from tengen.experience.experience import Experience
from tengen.experience.item_layout import STATE, ItemLayout
from tengen.experience.journal import JournalGap, OpenSegment
from tengen.experience.limiter import SamplesPerInsert, SamplesPerInsertConfig
from tengen.experience.manifest import Manifest, SegmentEntry
from tengen.experience.positions import sample_positions
from tengen.experience.replay_config import ReplayConfig
from tengen.experience.segment import SegmentReader
from tengen.experience.shuffled_files import ShuffledTurn
from tengen.experience.shuffled_rows import ShuffledRows
from tengen.experience.shuffler import NUM_VALIDATION_ROWS, Shuffler, ShufflingStopped
from tengen.experience.slot_writer import SlotWriter
from tengen.experience.step_client import StepClient
from tengen.experience.steps import StepTable
from tengen.experience.window import GameWindow
from tengen.experience.window_config import WindowConfig
from tengen.experience.window_memory import check_window_memory, predicted_window_bytes
from tengen.experience.writer import ExperienceWriter

__all__ = [
    "NUM_VALIDATION_ROWS",
    "STATE",
    "Experience",
    "ExperienceConfig",
    "ExperienceWriter",
    "GameWindow",
    "ItemLayout",
    "JournalGap",
    "Manifest",
    "OpenSegment",
    "ReplayConfig",
    "SamplesPerInsert",
    "SamplesPerInsertConfig",
    "SegmentEntry",
    "SegmentReader",
    "ShuffledRows",
    "ShuffledTurn",
    "Shuffler",
    "ShufflingStopped",
    "SlotWriter",
    "StepClient",
    "StepTable",
    "WindowConfig",
    "check_window_memory",
    "predicted_window_bytes",
    "sample_positions",
]
