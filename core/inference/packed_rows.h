#pragma once
// How positions travel to a device: as rows of bytes, small enough that the bus never limits.
//
// A packed row of C planes of H x W cells is
//
//   float32 [C]           the scale of each plane
//   bits    [C * H * W]   plane after plane; entry i is bit i % 8 of byte i / 8
//   zeros                 up to a multiple of 4 bytes
//
// and an entry is the scale of its plane where its bit is set, else 0. So a plane holds 0 and at
// most one other value: stones are ones, a constant such as komi is its value in every cell. The
// planes of native games are like that, and a test holds them to it. A game that is played outside
// the core may show any numbers; its rows are dense, float32 [C, H, W].
//
// tengen/inference/rows.py unpacks them on the device. Files of shuffled rows hold them too.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

// Writes one row, layout.num_bytes() long, of planes [C, H, W].
inline void write_row(const RowLayout& layout, const float* planes, uint8_t* row) {
  const size_t num_entries = layout.num_entries();
  if (!layout.is_packed) {
    std::memcpy(row, planes, num_entries * sizeof(float));
    return;
  }
  const size_t num_cells = layout.num_cells();
  for (size_t plane = 0; plane < layout.num_planes(); ++plane) {
    const float* entries = planes + plane * num_cells;
    float scale = 0.0f;
    for (size_t cell = 0; cell < num_cells && scale == 0.0f; ++cell) scale = entries[cell];
    std::memcpy(row + plane * sizeof(float), &scale, sizeof(float));
  }
  uint8_t* bits = row + layout.num_planes() * sizeof(float);
  std::memset(bits, 0, layout.num_bytes() - layout.num_planes() * sizeof(float));
  const size_t num_whole = num_entries / 8 * 8;
  for (size_t i = 0; i < num_whole; i += 8) {
    unsigned byte = 0;
    for (size_t bit = 0; bit < 8; ++bit) {
      byte |= static_cast<unsigned>(planes[i + bit] != 0.0f) << bit;
    }
    bits[i / 8] = static_cast<uint8_t>(byte);
  }
  for (size_t i = num_whole; i < num_entries; ++i) {
    if (planes[i] != 0.0f) bits[i / 8] |= static_cast<uint8_t>(1u << i % 8);
  }
}

// Reads a row back, into planes [C, H, W].
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
