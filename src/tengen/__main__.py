"""Runs the command ``tengen`` for ``python -m tengen``."""

from __future__ import annotations

import sys

from tengen.cli import main

sys.exit(main())
