"""One intra-op thread: these networks are too small for more."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
