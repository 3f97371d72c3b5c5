#pragma once
// A copy whose target is not looked at soon.

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tengen::store::engine {

// From here on. Shorter copies into one chunk after another go as fast by memcpy, and those of a
// small table stay in the cache.
constexpr uint64_t kMinStreamBytes = uint64_t{32} << 10;

// As memcpy, but where it is long, and the processor knows how, past the cache: what is written is
// not first read from memory, and what others need is not pushed out of the cache for it.
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
    _mm_sfence();  // such stores are in no order with the one that tells another thread of them
  }
#endif
  std::memcpy(to, from, num_bytes);
}

}  // namespace tengen::store::engine
