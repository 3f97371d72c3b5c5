#pragma once
// The random number generator Philox4x64-10, used by actors, with the same output as numpy's
// Philox. Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".

#include <array>
#include <cstdint>
#include <span>

namespace tengen {

std::array<uint64_t, 4> philox4x64(std::array<uint64_t, 4> counter, std::array<uint64_t, 2> key);

// Fills rows of `row_size` numbers with the output of numpy's Philox(key, counter), uniform in
// [0, 1) with 53 random bits. Each row starts with a new block of the generator. Precondition: the
// size of `uniforms` is a multiple of `row_size`.
void fill_uniforms(std::array<uint64_t, 2> key, std::array<uint64_t, 4> counter, size_t row_size,
                   std::span<double> uniforms);

}  // namespace tengen
