"""``python -m tengen`` is ``tengen``."""

from __future__ import annotations

import sys

from tengen.cli import main

sys.exit(main())
