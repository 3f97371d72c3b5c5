#include "store/session/ring_memory.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tengen::store {
namespace {

constexpr size_t kNumWords = std::extent_v<decltype(SessionHeader::reason_words)>;
using Words = std::array<uint32_t, kNumWords>;

}  // namespace

void write_reason(const std::string& text, SessionHeader* header) {
  Words words{};
  std::memcpy(words.data(), text.data(), std::min(text.size(), sizeof words - 1));
  const uint32_t edits = header->reason_edits.load(std::memory_order_relaxed);
  header->reason_edits.store(edits + 1, std::memory_order_relaxed);
  for (size_t i = 0; i < kNumWords; ++i) {
    header->reason_words[i].store(words[i], std::memory_order_release);
  }
  header->reason_edits.store(edits + 2, std::memory_order_release);
}

std::string read_reason(const SessionHeader& header) {
  Words words;
  // Retries while the server writes. If it died while writing, returns an inconsistent text.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const uint32_t edits = header.reason_edits.load(std::memory_order_acquire);
    for (size_t i = 0; i < kNumWords; ++i) {
      words[i] = header.reason_words[i].load(std::memory_order_acquire);
    }
    if (edits % 2 == 0 && header.reason_edits.load(std::memory_order_relaxed) == edits) break;
  }
  const char* text = reinterpret_cast<const char*>(words.data());
  return {text, strnlen(text, sizeof words)};
}

}  // namespace tengen::store
