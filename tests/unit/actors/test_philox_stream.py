"""One generator draws what a new one would draw at the same place."""

import numpy as np
import pytest

from tengen.actors.philox_stream import PhiloxStream


@pytest.mark.parametrize("shape", [(4, 4), (3, 8), (5,), (1, 2)])
def test_numbers_are_those_of_a_generator_of_their_own(shape):
    stream = PhiloxStream()
    places = [
        ((2**64 - 1, 0), (0, 0, 0, 0)),
        ((7, 3), (12, 2**63, 0, 1)),
        ((7, 4), (12, 2**63, 0, 1)),
        ((2**64 - 1, 0), (0, 0, 0, 0)),
    ]
    for key, counter in places:
        fresh = np.random.Philox(
            key=np.array(key, np.uint64), counter=np.array(counter, np.uint64)
        )
        expected = np.random.Generator(fresh).random(shape)
        np.testing.assert_array_equal(stream.at(key, counter, shape), expected)
