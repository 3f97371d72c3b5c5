#pragma once
// Philox4x64-10, the same as numpy's generator of that name: actors draw from this implementation,
// and tests compare it with numpy. Source: Salmon et al. 2011, "Parallel random numbers: as easy as
// 1, 2, 3".

#include <array>
#include <cstdint>
#include <span>

namespace tengen {

std::array<uint64_t, 4> philox4x64(std::array<uint64_t, 4> counter, std::array<uint64_t, 2> key);

// Fills rows of `row_size` numbers in [0, 1) with those that numpy's Philox(key, counter) draws,
// with 53 bits each. Every row starts at a new block, so its numbers do not depend on the other
// rows. Precondition: the size of `uniforms` is a multiple of `row_size`.
void fill_uniforms(std::array<uint64_t, 2> key, std::array<uint64_t, 4> counter, size_t row_size,
                   std::span<double> uniforms);

}  // namespace tengen
