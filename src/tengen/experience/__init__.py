"""Experience that learners draw from: windows of games, shuffled shards, step tables.

::

    writer = ExperienceWriter(run.experience / "selfplay-0", incarnation)
    segment = writer.open_games(generation, "gomoku/9")  # each game is durable
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
from tengen.experience.experience import (
    Divided,
    Experience,
    ExperiencePart,
    Followed,
)
from tengen.experience.games.generations import (
    MAX_WRITERS,
    TRAIN_WRITER,
    adopt_writer,
    begin_generation,
    claim_ahead,
    claim_writer,
    has_orphan,
    sealed_generation,
    writer_directory,
)
from tengen.experience.games.journal import JournalGap, OpenSegment
from tengen.experience.games.manifest import Manifest, SegmentEntry
from tengen.experience.games.open_generation import OpenGeneration
from tengen.experience.games.segment import SegmentReader
from tengen.experience.games.tables import read_table
from tengen.experience.games.writer import ExperienceWriter
from tengen.experience.generations.window import GenerationWindow
from tengen.experience.generations_config import GenerationsConfig
from tengen.experience.limiter import SamplesPerInsert, SamplesPerInsertConfig
from tengen.experience.replay_config import ReplayConfig
from tengen.experience.rows.positions import sample_positions
from tengen.experience.rows.shuffled_files import ShuffledTurn
from tengen.experience.rows.shuffled_rows import ShuffledRows
from tengen.experience.rows.shuffler import (
    NUM_VALIDATION_ROWS,
    Shuffler,
    ShufflingStopped,
)
from tengen.experience.rows.window import GameWindow
from tengen.experience.rows.window_memory import (
    check_window_memory,
    predicted_window_bytes,
)
from tengen.experience.steps.client import StepClient
from tengen.experience.steps.draws import StepDraws
from tengen.experience.steps.first_priorities import FirstPriorities
from tengen.experience.steps.item_layout import STATE, ItemLayout
from tengen.experience.steps.plan import StepPlan, plan_steps
from tengen.experience.steps.slot_writer import SlotWriter
from tengen.experience.steps.table import StepTable
from tengen.experience.window_config import WindowConfig

__all__ = [
    "MAX_WRITERS",
    "NUM_VALIDATION_ROWS",
    "STATE",
    "TRAIN_WRITER",
    "Divided",
    "Experience",
    "ExperienceConfig",
    "ExperiencePart",
    "ExperienceWriter",
    "FirstPriorities",
    "Followed",
    "GameWindow",
    "GenerationWindow",
    "GenerationsConfig",
    "ItemLayout",
    "JournalGap",
    "Manifest",
    "OpenGeneration",
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
    "StepDraws",
    "StepPlan",
    "StepTable",
    "WindowConfig",
    "adopt_writer",
    "begin_generation",
    "check_window_memory",
    "claim_ahead",
    "claim_writer",
    "has_orphan",
    "plan_steps",
    "predicted_window_bytes",
    "read_table",
    "sample_positions",
    "sealed_generation",
    "writer_directory",
]
