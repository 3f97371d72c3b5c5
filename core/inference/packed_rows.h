#pragma once
// The format in which positions are sent to a device, compact so that the bus is no bottleneck.
//
// A packed row of C planes of H x W cells is
//
//     float32 [C]           the scale of each plane
//     bits    [C * H * W]   in order of planes; entry i is bit i % 8 of byte i / 8
//     zeros                 padding to a multiple of 4 bytes
//
// An entry is the scale of its plane if its bit is set, otherwise 0. So a plane can contain 0 and
// one other value, such as 1 for stones, or komi in every cell. A test checks that the planes of
// native games have this form. External games may produce arbitrary numbers, so their rows are
// dense, float32 [C, H, W].
//
// tengen/inference/device.py unpacks rows on the device. Shuffle files use this format too.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "simd/kernels.h"

namespace tengen {

struct RowLayout {
  std::array<size_t, 3> planes_shape{};  // C, H, W
  bool is_packed = true;

  size_t num_planes() const { return planes_shape[0]; }
  size_t num_cells() const { return planes_shape[1] * planes_shape[2]; }
  size_t num_entries() const { return num_planes() * num_cells(); }
  size_t num_bytes() const {
    if (!is_packed) return num_entries() * sizeof(float);
    const size_t num_words = (num_entries() + 31) / 32;
    return num_planes() * sizeof(float) + num_words * sizeof(uint32_t);
  }
};

// Returns the index of the first set bit in [begin, end), or end. Reads complete 32-bit words.
inline size_t first_set_bit(const uint8_t* bits, size_t begin, size_t end) {
  static_assert(std::endian::native == std::endian::little);
  for (size_t i = begin; i < end; i = (i / 32 + 1) * 32) {
    uint32_t word;
    std::memcpy(&word, bits + i / 32 * sizeof(word), sizeof(word));
    word >>= i % 32;
    if (word != 0) return std::min(end, i + static_cast<size_t>(std::countr_zero(word)));
  }
  return end;
}

// Writes planes [C, H, W] as one row of layout.num_bytes() bytes.
inline void write_row(const RowLayout& layout, const float* planes, uint8_t* row) {
  const size_t num_entries = layout.num_entries();
  if (!layout.is_packed) {
    std::memcpy(row, planes, num_entries * sizeof(float));
    return;
  }
  const size_t num_cells = layout.num_cells();
  const size_t scale_bytes = layout.num_planes() * sizeof(float);
  uint8_t* bits = row + scale_bytes;
  simd::kernels().nonzero_bits(planes, num_entries, bits);
  const size_t num_written = (num_entries + 7) / 8;
  std::memset(bits + num_written, 0, layout.num_bytes() - scale_bytes - num_written);
  for (size_t plane = 0; plane < layout.num_planes(); ++plane) {
    const size_t begin = plane * num_cells, end = begin + num_cells;
    const size_t first = first_set_bit(bits, begin, end);
    const float scale = first == end ? 0.0f : planes[first];
    std::memcpy(row + plane * sizeof(float), &scale, sizeof(float));
  }
}

// Reads planes [C, H, W] from a row that write_row() has written.
inline void read_row(const RowLayout& layout, const uint8_t* row, float* planes) {
  if (!layout.is_packed) {
    std::memcpy(planes, row, layout.num_entries() * sizeof(float));
    return;
  }
  const size_t num_cells = layout.num_cells();
  const uint8_t* bits = row + layout.num_planes() * sizeof(float);
  for (size_t plane = 0, i = 0; plane < layout.num_planes(); ++plane) {
    float scale;
    std::memcpy(&scale, row + plane * sizeof(float), sizeof(float));
    for (const size_t end = i + num_cells; i < end; ++i) {
      planes[i] = bits[i / 8] >> i % 8 & 1 ? scale : 0.0f;
    }
  }
}

}  // namespace tengen
