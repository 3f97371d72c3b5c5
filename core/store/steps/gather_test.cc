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
  Column stacked = column("b", "u2", {5});
  stacked.stack = 4;
  const Schema deep({column("a", "u1", {}), stacked}, 7);
  TENGEN_CHECK(deep.num_context() == 3 && deep.step_bytes() == 11);
  TENGEN_CHECK(deep.ages_offset() == 64 + 128 && deep.chunk_bytes() == 64 + 128 + 64);
  TENGEN_CHECK(!(deep == Schema({column("a", "u1", {}), column("b", "u2", {5})}, 7)));
  for (const uint32_t stack : {0u, Schema::kMaxStack + 1}) {
    stacked.stack = stack;
    TENGEN_CHECK(make({stacked}, 1));
  }
}

// Steps written somewhere come back from there, in the order of the pieces.
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
      scatter(schema, in, nullptr, 1, slabs.at(slot), step);
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
  gather(schema, slabs, pieces, 1, out);
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

// Frames of random episodes, against frames counted by hand. A step's frame is its number.
void check_stacks(uint64_t seed) {
  Rng rng(seed, 0, 0, 0, Purpose::kTest);
  const uint32_t length = 1 + rng.below(7);
  Column deep = column("x", "i4", {});
  Column deeper = column("y", "i8", {2});
  deep.stack = 1 + rng.below(6);
  deeper.stack = 2 + rng.below(seed % 5 == 0 ? 255 : 4);
  const Schema schema({deep, column("z", "i4", {}), deeper}, length);
  const uint32_t num_chunks = 1 + rng.below(seed % 5 == 0 ? 400 : 12);
  std::vector<std::byte> slab(num_chunks * schema.chunk_bytes());
  std::byte* const base = slab.data();
  const Slabs slabs{{&base, 1}, num_chunks, schema.chunk_bytes()};
  Streams streams(length, schema.num_context());
  const uint32_t stream = streams.open();
  std::vector<uint32_t> begins;  // by step: the first of its episode
  for (uint32_t chunk = 0; chunk < num_chunks; ++chunk) {
    const uint32_t slot = num_chunks - 1 - chunk;
    streams.append(stream, slot);
    for (uint32_t offset = 0; offset < length; ++offset) {
      const uint32_t step = static_cast<uint32_t>(begins.size());
      const bool is_first = step == 0 || rng.below(seed % 5 == 0 ? 600 : 5) == 0;
      begins.push_back(is_first ? step : begins.back());
      const int32_t x = static_cast<int32_t>(step);
      const int64_t y[] = {x, -x};
      const std::byte* in[] = {reinterpret_cast<const std::byte*>(&x),
                               reinterpret_cast<const std::byte*>(&x),
                               reinterpret_cast<const std::byte*>(y)};
      const uint8_t age = static_cast<uint8_t>(std::min(step - begins.back(), Schema::kMaxAge));
      scatter(schema, in, &age, 1, slabs.at(slot), offset);
    }
  }
  const uint32_t total = num_chunks * length;
  const uint32_t num_steps = 1 + rng.below(std::min(total, 9u));
  std::vector<uint32_t> firsts;
  std::vector<Piece> pieces;
  for (int i = 0; i < 20; ++i) {
    firsts.push_back(rng.below(total - num_steps + 1));
    streams.locate({firsts.back(), stream, num_steps}, &pieces);
  }
  std::vector<int32_t> x(20 * num_steps * deep.stack);
  std::vector<int32_t> z(20 * num_steps);
  std::vector<int64_t> y(20 * num_steps * deeper.stack * 2);
  std::byte* out[] = {reinterpret_cast<std::byte*>(x.data()),
                      reinterpret_cast<std::byte*>(z.data()),
                      reinterpret_cast<std::byte*>(y.data())};
  gather(schema, slabs, pieces, num_steps, out);
  size_t row = 0;
  for (const uint32_t first : firsts) {
    for (uint32_t step = first; step < first + num_steps; ++step, ++row) {
      const auto frame = [&](uint32_t back) {
        const int64_t at = int64_t{step} - back;
        return std::max<int64_t>(at, begins[step]);
      };
      TENGEN_CHECK(z[row] == static_cast<int32_t>(step));
      for (uint32_t i = 0; i < deep.stack; ++i) {
        TENGEN_CHECK(x[row * deep.stack + i] == frame(deep.stack - 1 - i));
      }
      for (uint32_t i = 0; i < deeper.stack; ++i) {
        const int64_t* got = &y[(row * deeper.stack + i) * 2];
        TENGEN_CHECK(got[0] == frame(deeper.stack - 1 - i) && got[1] == -got[0]);
      }
    }
  }
}

}  // namespace

int main() {
  check_layout();
  for (uint64_t seed = 0; seed < 50; ++seed) check_copies(seed);
  for (uint64_t seed = 0; seed < 200; ++seed) check_stacks(seed);
  return 0;
}
