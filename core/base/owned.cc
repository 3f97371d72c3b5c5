#include "base/owned.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tengen {
namespace {

constexpr int kMaxDescriptors = 1 << 20;
constexpr int kBits = 64;
// A bit a descriptor. Read in a forked process, where no lock may be taken.
std::array<std::atomic<uint64_t>, kMaxDescriptors / kBits> is_owned{};
std::atomic<int> num_words = 0;  // behind the last that was ever set
int nothing = -1;                // of /dev/null

// A number that was closed might become another file's, which its destructor would then close.
void let_go_in_child() {
  for (int word = 0; word < num_words.load(); ++word) {
    const uint64_t owned = is_owned[static_cast<size_t>(word)].exchange(0);
    for (int bit = 0; bit < kBits; ++bit) {
      if ((owned >> bit & 1) == 0) continue;
      const int descriptor = word * kBits + bit;
      if (nothing < 0 || dup2(nothing, descriptor) < 0) {
        ::close(descriptor);
      } else {
        fcntl(descriptor, F_SETFD, FD_CLOEXEC);
      }
    }
  }
}

void begin() {
  nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  pthread_atfork(nullptr, nullptr, let_go_in_child);
}

}  // namespace

void own_descriptor(int descriptor) {
  if (descriptor < 0 || descriptor >= kMaxDescriptors) return;
  static std::once_flag once;
  std::call_once(once, begin);
  const int word = descriptor / kBits;
  is_owned[static_cast<size_t>(word)] |= uint64_t{1} << descriptor % kBits;
  for (int known = num_words; known <= word && !num_words.compare_exchange_weak(known, word + 1);) {
  }
}

void disown_descriptor(int descriptor) {
  if (descriptor < 0 || descriptor >= kMaxDescriptors) return;
  is_owned[static_cast<size_t>(descriptor / kBits)] &= ~(uint64_t{1} << descriptor % kBits);
}

}  // namespace tengen
