"""Progress as TensorBoard scalars, for those who ask for them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tengen.errors import UsageError
from tengen.observe.progress import Progress

__all__ = ["TensorBoardWriter"]


class TensorBoardWriter:
    """Writes every number of ``Progress`` by generation.

    Needs the packages ``tensorboard`` and ``torch``; importing this module does not.

    Args:
        folder: Where TensorBoard will look, ``RUN/logs/tensorboard``.

    Raises:
        UsageError: TensorBoard is not installed.
    """

    def __init__(self, folder: Path) -> None:
        if importlib.util.find_spec("tensorboard") is None:
            raise UsageError(
                "tensorboard (absent) must be installed to write its files; "
                "run pip install 'tengen[tensorboard]' or leave the option out"
            )
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(log_dir=str(folder))

    def write(self, progress: Progress) -> None:
        """Adds one generation; blocks only when TensorBoard's queue is full."""
        for name, value in progress.to_dict().items():
            if isinstance(value, (int, float)) and name != "generation":
                self._writer.add_scalar(name, value, progress.generation)

    def close(self) -> None:
        """Writes what is queued and closes the files."""
        self._writer.close()
