"""Makes the helpers in this folder importable, as a user's own games are."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
