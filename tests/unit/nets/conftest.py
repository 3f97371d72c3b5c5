"""One intra-op thread: these networks are too small for more."""

import torch

torch.set_num_threads(1)
