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

}  // namespace

void gather(const Schema& schema, const Slabs& slabs, std::span<const Piece> pieces,
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

void scatter(const Schema& schema, std::span<const std::byte* const> in, uint32_t num_steps,
             std::byte* chunk, uint32_t offset) {
  for (size_t c = 0; c < schema.columns().size(); ++c) {
    const uint64_t bytes = schema.columns()[c].num_bytes;
    stream_copy(chunk + schema.offset(c) + offset * bytes, in[c], num_steps * bytes);
  }
}

}  // namespace tengen::store::engine
