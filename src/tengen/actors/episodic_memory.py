"""The memory of an episode, in which an actor finds how novel an observation is.

Legend: N copies, D features of an embedding, K neighbours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_KERNEL_EPSILON = 1e-4
_CLUSTER_DISTANCE = 0.008
_SIMILARITY_OFFSET = 1e-3
_MOST_SIMILARITY = 8.0
# Minimum weight of a step in the running mean of distances, which follows the embedding
# as it is trained.
_LEAST_RATE = 1e-3


class EpisodicMemory:
    """The embeddings of the current episode's observations in N copies.

    Source: Badia et al. 2020, "Never Give Up" (arXiv:2002.06038), section 3 and
    algorithm 1.
    Differs from the paper: novelty is divided by that of an embedding whose neighbours
    all have the mean distance, and is at most 1; in an episode's first K steps, missing
    neighbours count as neighbours at the mean distance. In the paper novelty is about
    30 for an average embedding, and 1,000 at the first step.
    """

    def __init__(self, num_rows: int, capacity: int, num_neighbours: int) -> None:
        """Creates empty memories.

        Args:
            num_rows: Number N of copies.
            capacity: Maximum number of embeddings of an episode; then new ones replace
                the oldest.
            num_neighbours: Number K of nearest neighbours.
        """
        self._capacity = capacity
        self._num_neighbours = num_neighbours
        self._kept = np.zeros((num_rows, 0, 0), np.float32)
        self._squares = np.zeros((num_rows, 0), np.float32)
        self._origins = np.zeros((num_rows, 1), np.float32)
        self._counts = np.zeros(num_rows, np.int64)
        self._mean_distance = 0.0
        self._num_means = 0

    def clear(self, rows: NDArray[np.bool_]) -> None:
        """Empties the memories of the rows of the mask ``[N]``."""
        self._counts[rows] = 0

    def novelty(self, embedding: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the novelty ``[N]`` of embeddings in [0, 1], and remembers them.

        Args:
            embedding: ``[N, D]`` float32, finite.
        """
        # Relative to the episode's first embedding, because distances are computed as
        # differences of squared norms, which are exact only for small norms.
        is_first = (self._counts == 0)[:, None]
        self._origins = np.where(is_first, embedding, self._origins)
        embedding = embedding - self._origins
        squares = np.einsum("nd,nd->n", embedding, embedding)
        near = self._nearest(embedding, squares)
        self._remember(embedding, squares)
        is_there = np.isfinite(near)
        if is_there.any():
            self._num_means += 1
            rate = max(1.0 / self._num_means, _LEAST_RATE)
            self._mean_distance += rate * (near[is_there].mean() - self._mean_distance)
        scaled = np.ones(near.shape)
        np.divide(near, max(self._mean_distance, 1e-12), out=scaled, where=is_there)
        far = np.where(is_there, np.maximum(scaled - _CLUSTER_DISTANCE, 0.0), 1.0)
        similarity = np.sqrt((_KERNEL_EPSILON / (far + _KERNEL_EPSILON)).sum(axis=1))
        similarity += _SIMILARITY_OFFSET
        usual = self._num_neighbours * _KERNEL_EPSILON / (1.0 + _KERNEL_EPSILON)
        novelty = (np.sqrt(usual) + _SIMILARITY_OFFSET) / similarity
        novelty[similarity > _MOST_SIMILARITY] = 0.0
        found: NDArray[np.float32] = novelty.clip(max=1.0).astype(np.float32)
        return found

    def _nearest(
        self, embedding: NDArray[np.float32], squares: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """Returns the squared distances ``[N, K]`` to neighbours; infinite if missing.

        They are not sorted.
        """
        num_kept = np.minimum(self._counts, self._capacity)
        longest, num_near = int(num_kept.max()), self._num_neighbours
        found = np.full((len(embedding), max(longest, num_near)), np.inf)
        if longest:
            products = np.matmul(self._kept[:, :longest], embedding[:, :, None])
            sums = self._squares[:, :longest] + squares[:, None]
            found[:, :longest] = np.maximum(sums - 2.0 * products[..., 0], 0.0)
            found[np.arange(found.shape[1]) >= num_kept[:, None]] = np.inf
        return np.partition(found, num_near - 1, axis=1)[:, :num_near]

    def _remember(
        self, embedding: NDArray[np.float32], squares: NDArray[np.float32]
    ) -> None:
        num_rows, length = embedding.shape
        needed = min(int(self._counts.max()) + 1, self._capacity)
        if needed > self._kept.shape[1]:
            room = min(max(64, 2 * needed), self._capacity)
            kept = np.zeros((num_rows, room, length), np.float32)
            kept[:, : self._kept.shape[1]] = self._kept.reshape(num_rows, -1, length)
            self._kept = kept
            missing = room - self._squares.shape[1]
            self._squares = np.pad(self._squares, ((0, 0), (0, missing)))
        place = np.arange(num_rows), self._counts % self._capacity
        self._kept[place] = embedding
        self._squares[place] = squares
        self._counts += 1
