import zlib

import numpy as np
import pytest

from tengen.evaluation import ModelPlayer


class HashRunner:
    """Answers each row by a hash of its planes: a fixed, senseless network."""

    def __init__(self, planes, policy, value):
        self.arrays = planes, policy, value

    def run(self, num_rows):
        planes, policy, value = self.arrays
        for row in range(num_rows):
            rng = np.random.default_rng(zlib.crc32(planes[row].tobytes()))
            policy[row] = rng.standard_normal(policy.shape[1])
            value[row] = rng.uniform(-1, 1)


class HashBackend:
    name = "hash"
    version = "1"
    precision = "fp32"
    batch_shape = "dynamic"

    def bind(self, planes, policy, value):
        return HashRunner(planes, policy, value)


@pytest.fixture
def hash_player():
    """Makes a model player of a game without a model."""

    def make(task, name="hash", backend=None):
        return ModelPlayer(name=name, task=task, backend=backend or HashBackend())

    return make
