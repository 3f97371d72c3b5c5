"""Uniform numbers of any place in a stream, by one generator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PhiloxStream"]


class PhiloxStream:
    """Numbers of a counter-based generator, by key and counter alone.

    A new generator for each place would ask the system for a seed that is not used:
    that took a tenth of an actor's time.

    Source: Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3", as numpy
    has it.
    """

    def __init__(self) -> None:
        """Makes the generator."""
        self._bits = np.random.Philox(0)
        self._generator = np.random.Generator(self._bits)
        self._state: Any = dict(self._bits.state)

    def at(
        self,
        key: tuple[int, int],
        counter: tuple[int, int, int, int],
        shape: tuple[int, ...],
    ) -> NDArray[np.float64]:
        """Returns numbers in [0, 1), those of a new ``Philox(key, counter)``.

        Args:
            key: Two words of 64 bits.
            counter: Four, the least first.
            shape: Of the numbers.
        """
        self._state["state"] = {
            "counter": np.array(counter, np.uint64),
            "key": np.array(key, np.uint64),
        }
        # Nothing of what was drawn before is left over: a counter has four numbers.
        self._state |= {"buffer_pos": 4, "has_uint32": 0, "uinteger": 0}
        self._bits.state = self._state
        return self._generator.random(shape)
