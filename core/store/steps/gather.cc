#include "store/steps/gather.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tengen::store::engine {
namespace {

// The number of bytes to prefetch from the next piece while the previous piece is copied. A copy of
// a few KiB would wait for its first cache lines; the processor itself prefetches the others.
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
  uint64_t done = 0;  // number of steps copied
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

void stream_copy(std::byte* to, const std::byte* from, uint64_t num_bytes) {
#if defined(__SSE2__)
  if (num_bytes >= kMinStreamBytes) {
    const uint64_t to_line = -reinterpret_cast<uintptr_t>(to) % 64;
    std::memcpy(to, from, to_line);
    for (to += to_line, from += to_line, num_bytes -= to_line; num_bytes >= 64; num_bytes -= 64) {
      const auto* in = reinterpret_cast<const __m128i*>(from);
      auto* out = reinterpret_cast<__m128i*>(to);
      const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
      const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
      _mm_stream_si128(out, a);
      _mm_stream_si128(out + 1, b);
      _mm_stream_si128(out + 2, c);
      _mm_stream_si128(out + 3, d);
      to += 64;
      from += 64;
    }
    _mm_sfence();  // orders these stores before the one that notifies another thread
  }
#endif
  std::memcpy(to, from, num_bytes);
}

SavedSteps pack_steps(const Schema& schema, const std::byte* chunk, uint32_t first,
                      uint32_t count) {
  SavedSteps steps{first, count, {}};
  schema.for_each_run(chunk, first, count, [&](const std::byte* from, uint64_t num_bytes) {
    steps.bytes.insert(steps.bytes.end(), from, from + num_bytes);
  });
  return steps;
}

void unpack_steps(const Schema& schema, const SavedSteps& steps, std::byte* chunk) {
  if (uint64_t{steps.first} + steps.count > schema.steps_per_chunk() ||
      steps.bytes.size() != steps.count * schema.step_bytes()) {
    throw Error("steps (" + std::to_string(steps.first) + " to " +
                std::to_string(uint64_t{steps.first} + steps.count) +
                ") must be in a chunk of the table; the log is damaged, remove the store's folder");
  }
  const std::byte* from = steps.bytes.data();
  schema.for_each_run(chunk, steps.first, steps.count, [&](std::byte* to, uint64_t num_bytes) {
    std::memcpy(to, from, num_bytes);
    from += num_bytes;
  });
}

}  // namespace tengen::store::engine
