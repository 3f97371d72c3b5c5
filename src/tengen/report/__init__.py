"""Exports a run's web page as one file, and shows a run's curves in a notebook.

    tengen.report.curves("runs/gomoku/9")        # displayed by a notebook
    tengen.report.write_report("runs/gomoku/9", "gomoku.html")

Importing this package does not import torch.
"""

from tengen.report.curves import Curves, curves
from tengen.report.write import WrittenReport, write_report

__all__ = ["Curves", "WrittenReport", "curves", "write_report"]
