"""Experience for learners: windows of games, files of shuffled rows, and step tables.

::

    writer = ExperienceWriter(run.experience / "selfplay-0", incarnation)
    segment = writer.open_games(generation, "gomoku/9")  # stores each game durably
    engine.play(segment.sink)
    segment.close()
    writer.seal(generation)                 # writes a zip file of .npy columns

    window = GameWindow("gomoku/9", run.experience, WindowConfig(), seed)
    window.refresh()
    while window.available() >= 256:
        batch = window.sample(256)
        learner.step(batch.columns)
        batch.ack()
"""

from tengen.experience.config import (
    ExperienceConfig,
    GenerationsConfig,
    ReplayConfig,
    SamplesPerInsertConfig,
    WindowConfig,
)
from tengen.experience.demonstrations import (
    Demonstrations,
    Episode,
    write_demonstrations,
)
from tengen.experience.experience import Divided, Experience, ExperiencePart
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
from tengen.experience.games.manifest import Manifest
from tengen.experience.games.segment import SegmentReader
from tengen.experience.games.tables import read_table
from tengen.experience.games.writer import ExperienceWriter, OpenGeneration
from tengen.experience.rows.derived_rows import sample_positions
from tengen.experience.rows.generation_window import GenerationWindow
from tengen.experience.rows.shuffled_rows import ShuffledRows
from tengen.experience.rows.shuffler import (
    NUM_VALIDATION_ROWS,
    Shuffler,
    ShufflingStopped,
)
from tengen.experience.rows.window import (
    GameWindow,
    check_window_memory,
    predicted_window_bytes,
)
from tengen.experience.steps.client import StepClient, StepDraws
from tengen.experience.steps.item_layout import STATE, ItemLayout
from tengen.experience.steps.mixing import Mixture
from tengen.experience.steps.room import StepPlan, plan_steps
from tengen.experience.steps.slot_writer import FirstPriorities
from tengen.experience.steps.table import StepTable

__all__ = [
    "MAX_WRITERS",
    "NUM_VALIDATION_ROWS",
    "STATE",
    "TRAIN_WRITER",
    "Demonstrations",
    "Divided",
    "Episode",
    "Experience",
    "ExperienceConfig",
    "ExperiencePart",
    "ExperienceWriter",
    "FirstPriorities",
    "GameWindow",
    "GenerationWindow",
    "GenerationsConfig",
    "ItemLayout",
    "JournalGap",
    "Manifest",
    "Mixture",
    "OpenGeneration",
    "OpenSegment",
    "ReplayConfig",
    "SamplesPerInsertConfig",
    "SegmentReader",
    "ShuffledRows",
    "Shuffler",
    "ShufflingStopped",
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
    "write_demonstrations",
    "writer_directory",
]
