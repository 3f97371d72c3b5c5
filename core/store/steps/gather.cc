#include "store/steps/gather.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "store/steps/stream_copy.h"

namespace tengen::store::engine {
namespace {

// A copy of a few KiB waits for its first lines; these are asked for while the piece before it is
// copied. The processor fetches the rest by itself.
constexpr uint64_t kPrefetchBytes = 1024;

void prefetch(const std::byte* from, uint64_t num_bytes) {
  for (uint64_t i = 0; i < std::min(num_bytes, kPrefetchBytes); i += 64) {
    __builtin_prefetch(from + i);
  }
}

// Where nothing is stacked a piece is one copy a column.
void copy_runs(const Schema& schema, const Slabs& slabs, std::span<const Piece> pieces,
               std::span<std::byte* const> out) {
  const size_t num_columns = schema.columns().size();
  uint64_t done = 0;  // steps
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const std::byte* chunk = slabs.at(piece.slot);
    for (size_t c = 0; c < num_columns; ++c) {
      const uint64_t bytes = schema.columns()[c].num_bytes;
      if (i + 1 < pieces.size()) {
        const Piece& next = pieces[i + 1];
        prefetch(slabs.at(next.slot) + schema.offset(c) + next.offset * bytes,
                 next.num_steps * bytes);
      }
      std::memcpy(out[c] + done * bytes, chunk + schema.offset(c) + piece.offset * bytes,
                  piece.num_steps * bytes);
    }
    done += piece.num_steps;
  }
}

// A step that a sample reads.
struct Place {
  const std::byte* chunk;
  uint32_t offset;
};

// `places` are the sample's context and its steps; step `first` of the result is its first.
void copy_stacks(const Schema& schema, std::span<const Place> places, uint64_t first,
                 std::span<std::byte* const> out) {
  for (size_t c = 0; c < schema.columns().size(); ++c) {
    const Column& column = schema.columns()[c];
    const uint64_t bytes = column.num_bytes;
    std::byte* to = out[c] + first * column.stack * bytes;
    for (size_t i = schema.num_context(); i < places.size(); ++i) {
      const uint32_t age =
          static_cast<uint32_t>(places[i].chunk[schema.ages_offset() + places[i].offset]);
      for (uint32_t back = column.stack; back-- > 0;) {
        const Place& from = places[i - std::min(back, age)];
        std::memcpy(to, from.chunk + schema.offset(c) + from.offset * bytes, bytes);
        to += bytes;
      }
    }
  }
}

}  // namespace

void gather(const Schema& schema, const Slabs& slabs, std::span<const Piece> pieces,
            uint32_t num_steps, std::span<std::byte* const> out) {
  if (schema.num_context() == 0) return copy_runs(schema, slabs, pieces, out);
  std::vector<Place> places;
  places.reserve(schema.num_context() + num_steps);
  uint64_t done = 0;  // steps
  for (const Piece& piece : pieces) {
    for (uint32_t i = 0; i < piece.num_steps; ++i) {
      places.push_back({slabs.at(piece.slot), piece.offset + i});
    }
    if (places.size() < schema.num_context() + num_steps) continue;
    copy_stacks(schema, places, done, out);
    places.clear();
    done += num_steps;
  }
}

void scatter(const Schema& schema, std::span<const std::byte* const> in, const uint8_t* ages,
             uint32_t num_steps, std::byte* chunk, uint32_t offset) {
  for (size_t c = 0; c < schema.columns().size(); ++c) {
    const uint64_t bytes = schema.columns()[c].num_bytes;
    stream_copy(chunk + schema.offset(c) + offset * bytes, in[c], num_steps * bytes);
  }
  if (schema.num_context() > 0) std::memcpy(chunk + schema.ages_offset() + offset, ages, num_steps);
}

}  // namespace tengen::store::engine
