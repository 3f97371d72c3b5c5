#pragma once
// A copy to memory that is not read soon.

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tengen::store::engine {

// The shortest copy that goes past the cache. Shorter copies into one chunk after another are as
// fast by memcpy, and those of a small table stay in the cache.
constexpr uint64_t kMinStreamBytes = uint64_t{32} << 10;

// As memcpy. A long copy goes past the cache where the processor can: the target is not first read
// from memory, and data that others need stays in the cache.
inline void stream_copy(std::byte* to, const std::byte* from, uint64_t num_bytes) {
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
    _mm_sfence();  // orders these stores before the one that tells another thread of them
  }
#endif
  std::memcpy(to, from, num_bytes);
}

}  // namespace tengen::store::engine
