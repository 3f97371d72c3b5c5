#pragma once
// Philox4x64-10, which numpy's generator of that name is too: its numbers come from here where an
// actor draws, and from numpy where a test asks whether they are right.
// Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".

#include <array>
#include <cstdint>
#include <span>

namespace tengen {

std::array<uint64_t, 4> philox4x64(std::array<uint64_t, 4> counter, std::array<uint64_t, 2> key);

// Fills rows of `row_size` numbers in [0, 1) with those that numpy's Philox(key, counter) draws:
// 53 bits each. Every row begins with a block of its own, so that it has the same numbers whatever
// rows stand before it. Precondition: the size of `uniforms` is a multiple of `row_size`.
void fill_uniforms(std::array<uint64_t, 2> key, std::array<uint64_t, 4> counter, size_t row_size,
                   std::span<double> uniforms);

}  // namespace tengen
