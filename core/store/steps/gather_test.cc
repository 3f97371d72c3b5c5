#include "store/steps/gather.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

Column column(const char* name, const char* dtype, std::vector<uint32_t> shape) {
  return {name, dtype, std::move(shape), 0};
}

void check_layout() {
  const Schema schema({column("a", "u1", {3}), column("b", "f4", {}), column("c", "f8", {2, 5})},
                      7);
  TENGEN_CHECK(schema.step_bytes() == 3 + 4 + 80);
  TENGEN_CHECK(schema.offset(0) == 0 && schema.offset(1) == 64 && schema.offset(2) == 128);
  TENGEN_CHECK(schema.chunk_bytes() == 128 + 576);
  const auto make = [](std::vector<Column> columns, uint32_t steps) {
    return throws([&] { Schema(columns, steps); });
  };
  TENGEN_CHECK(make({}, 1) && make({column("", "u1", {})}, 1) && make({column("a", "O8", {})}, 1));
  TENGEN_CHECK(make({column("a", "u1", {}), column("a", "u1", {})}, 1));
  TENGEN_CHECK(make({column("a", "u1", {0})}, 1) && make({column("a", "u1", {})}, 0));
  TENGEN_CHECK(make({column("a", "f8", {1u << 31, 1u << 31})}, 1));
  TENGEN_CHECK(make({column("a", "u1", {1u << 30})}, 5));
  TENGEN_CHECK(!(Schema({column("a", "u1", {})}, 1) == Schema({column("a", "i1", {})}, 1)));
}

// Gathered steps equal the scattered steps, in the order of the pieces.
void check_copies(uint64_t seed) {
  Rng rng(seed, 0, 0, 0, Purpose::kTest);
  const uint32_t length = 1 + rng.below(6);
  const Schema schema({column("x", "u1", {1 + rng.below(3000)}), column("y", "i4", {2})}, length);
  const size_t sizes[] = {schema.columns()[0].num_bytes, schema.columns()[1].num_bytes};
  std::vector<std::vector<std::byte>> memory(3, std::vector<std::byte>(4 * schema.chunk_bytes()));
  std::vector<std::byte*> bases;
  for (auto& slab : memory) bases.push_back(slab.data());
  const Slabs slabs{bases, 4, schema.chunk_bytes()};
  const auto value = [](uint32_t slot, uint32_t step, size_t i) {
    return static_cast<std::byte>(slot * 31 + step * 7 + i * 3 + i / 251);
  };
  for (uint32_t slot = 0; slot < 12; ++slot) {
    for (uint32_t step = 0; step < length; ++step) {
      std::vector<std::byte> x(sizes[0]);
      std::vector<std::byte> y(sizes[1]);
      for (size_t i = 0; i < x.size(); ++i) x[i] = value(slot, step, i);
      for (size_t i = 0; i < y.size(); ++i) y[i] = value(slot, step, i + 9);
      const std::byte* in[] = {x.data(), y.data()};
      scatter(schema, in, 1, slabs.at(slot), step);
    }
  }
  std::vector<Piece> pieces(1 + rng.below(10));
  uint32_t total = 0;
  for (Piece& piece : pieces) {
    piece.slot = rng.below(12);
    piece.offset = rng.below(length);
    piece.num_steps = 1 + rng.below(length - piece.offset);
    total += piece.num_steps;
  }
  std::vector<std::byte> x(total * sizes[0]);
  std::vector<std::byte> y(total * sizes[1]);
  std::byte* out[] = {x.data(), y.data()};
  gather(schema, slabs, pieces, out);
  size_t row = 0;
  for (const Piece& piece : pieces) {
    for (uint32_t k = 0; k < piece.num_steps; ++k, ++row) {
      for (size_t i = 0; i < sizes[0]; ++i) {
        TENGEN_CHECK(x[row * sizes[0] + i] == value(piece.slot, piece.offset + k, i));
      }
      for (size_t i = 0; i < sizes[1]; ++i) {
        TENGEN_CHECK(y[row * sizes[1] + i] == value(piece.slot, piece.offset + k, i + 9));
      }
    }
  }
}

// Copies `num_bytes` between unaligned addresses, and checks these bytes and those around them.
void check_stream_copy(uint64_t num_bytes, uint64_t from_offset, uint64_t to_offset) {
  constexpr uint64_t kMargin = 64;
  const auto value = [](uint64_t i) { return static_cast<std::byte>(i * 7 + i / 256 + 1); };
  std::vector<std::byte> from(num_bytes + kMargin);
  for (uint64_t i = 0; i < from.size(); ++i) from[i] = value(i);
  std::vector<std::byte> to(to_offset + num_bytes + kMargin, std::byte{0});
  stream_copy(to.data() + to_offset, from.data() + from_offset, num_bytes);
  for (uint64_t i = 0; i < to.size(); ++i) {
    const bool is_copied = i >= to_offset && i < to_offset + num_bytes;
    TENGEN_CHECK(to[i] == (is_copied ? value(i - to_offset + from_offset) : std::byte{0}));
  }
}

}  // namespace

int main() {
  check_layout();
  for (const uint64_t num_bytes : {uint64_t{0}, uint64_t{63}, kMinStreamBytes - 1, kMinStreamBytes,
                                   kMinStreamBytes + 1, kMinStreamBytes + 63, uint64_t{112'640}}) {
    for (uint64_t i = 0; i < 64; i += 7) check_stream_copy(num_bytes, i % 64, (3 * i + 1) % 64);
    check_stream_copy(num_bytes, 0, 0);
  }
  for (uint64_t seed = 0; seed < 50; ++seed) check_copies(seed);
  return 0;
}
