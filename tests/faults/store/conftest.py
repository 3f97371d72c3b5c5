"""Makes the helpers of the store's unit tests and of this folder importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "unit" / "experience"))
sys.path.insert(0, str(Path(__file__).parent))
