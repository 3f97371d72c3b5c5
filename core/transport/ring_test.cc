#include "transport/ring.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "transport/shared_memory.h"

using namespace tengen;
using transport::Ring;

namespace {

// Sends one message; returns false if the ring is full.
bool push(Ring& ring, std::span<const std::byte> message) {
  std::byte* to = ring.reserve(static_cast<uint32_t>(message.size()));
  if (to == nullptr) return false;
  std::copy(message.begin(), message.end(), to);
  ring.commit(static_cast<uint32_t>(message.size()));
  return true;
}

constexpr uint32_t kCapacity = 1024;

// Returns a message whose length and bytes are derived from `number`.
std::vector<std::byte> message_of(uint64_t number, uint32_t longest) {
  Rng rng(number, 0, 0, 0, Purpose::kTest);
  std::vector<std::byte> message(rng.below(longest + 1));
  for (std::byte& byte : message) byte = static_cast<std::byte>(rng.next32());
  return message;
}

void send(Ring& ring, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const std::vector<std::byte> message = message_of(i, ring.max_message());
    while (!push(ring, message)) std::this_thread::yield();
  }
}

// Receives messages until `is_over` is true and the ring is empty. Returns the number of messages.
template <class F>
uint64_t receive(Ring& ring, F&& is_over) {
  uint64_t count = 0;
  for (;;) {
    const bool was_over = is_over(count);
    const std::span<const std::byte> got = ring.front();
    if (got.data() == nullptr) {
      if (was_over) return count;
      std::this_thread::yield();
      continue;
    }
    const std::vector<std::byte> expected = message_of(count, ring.max_message());
    TENGEN_CHECK(std::equal(got.begin(), got.end(), expected.begin(), expected.end()));
    TENGEN_CHECK(reinterpret_cast<uintptr_t>(got.data()) % 8 == 0);
    ring.pop();
    ++count;
  }
}

void check_threads() {
  const transport::SharedMemory memory =
      transport::SharedMemory::anonymous(Ring::num_bytes(kCapacity));
  Ring producer(memory.data(), kCapacity);
  Ring consumer(memory.data(), kCapacity);
  constexpr uint64_t kCount = 20000;
  std::thread thread([&] { send(producer, kCount); });
  TENGEN_CHECK(receive(consumer, [](uint64_t n) { return n == kCount; }) == kCount);
  thread.join();
  TENGEN_CHECK(consumer.is_empty());
}

// If a producer is killed at any moment, the ring contains complete messages without gaps.
void check_killed_producer() {
  const std::string path = "/tmp/tengen-ring-test-" + std::to_string(getpid());
  const transport::SharedMemory memory =
      transport::SharedMemory::create(path, Ring::num_bytes(kCapacity));
  for (int round = 0; round < 8; ++round) {
    std::memset(memory.data(), 0, memory.num_bytes());
    const pid_t child = fork();
    if (child == 0) {
      alarm(120);  // in case the parent does not live to kill it
      const transport::SharedMemory same = transport::SharedMemory::open(path);
      Ring ring(same.data(), kCapacity);
      send(ring, UINT64_MAX);
    }
    Ring ring(memory.data(), kCapacity);
    bool is_dead = false;
    const uint64_t enough = 50 + 400 * static_cast<uint64_t>(round);
    receive(ring, [&](uint64_t count) {
      if (count >= enough && !is_dead) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        is_dead = true;
      }
      return is_dead;
    });
  }
  unlink(path.c_str());
}

void check_full() {
  const transport::SharedMemory memory = transport::SharedMemory::anonymous(Ring::num_bytes(64));
  Ring ring(memory.data(), 64);
  const std::vector<std::byte> message(ring.max_message());
  TENGEN_CHECK(message.size() == 24 && push(ring, message) && push(ring, message));
  TENGEN_CHECK(!push(ring, {}) && ring.reserve(0) == nullptr);
  ring.front();
  ring.pop();
  TENGEN_CHECK(push(ring, {}));
  TENGEN_CHECK(throws([&] { Ring(memory.data(), 96); }));
  TENGEN_CHECK(throws([&] { Ring(memory.data(), 32); }));
}

// An invalid length is rejected, and nothing beyond the published bytes is read.
void check_damage() {
  constexpr uint32_t kCounters = 128;  // bytes before the messages
  TENGEN_CHECK(Ring::num_bytes(64) == kCounters + 64);
  const transport::SharedMemory memory = transport::SharedMemory::anonymous(Ring::num_bytes(64));
  Ring ring(memory.data(), 64);
  const std::vector<std::byte> message(8);  // occupies 16 bytes of the ring
  const auto refuses = [&](uint32_t at, uint32_t length) {
    std::memcpy(memory.data() + kCounters + at, &length, sizeof length);
    return throws([&] { ring.front(); });
  };
  TENGEN_CHECK(push(ring, message));
  TENGEN_CHECK(refuses(0, 9) && !refuses(0, 8));  // not completely published
  for (int i = 1; i < 4; ++i) TENGEN_CHECK(push(ring, message));
  TENGEN_CHECK(refuses(0, 25) && !refuses(0, 24));  // longer than the maximum
  TENGEN_CHECK(!refuses(0, 8));
  for (int i = 0; i < 3; ++i) {
    TENGEN_CHECK(ring.front().size() == 8);
    ring.pop();
  }
  for (int i = 0; i < 2; ++i) TENGEN_CHECK(push(ring, message));
  TENGEN_CHECK(refuses(48, 9) && !refuses(48, 8));  // crosses the end
}

// Staged messages and consumed space are not visible before publish() and release(), and another
// process may publish or release them.
void check_resume() {
  const transport::SharedMemory memory = transport::SharedMemory::anonymous(Ring::num_bytes(256));
  Ring producer(memory.data(), 256);
  Ring consumer(memory.data(), 256);
  const auto stage = [](Ring& ring, char letter) {
    std::byte* to = ring.reserve(1);
    TENGEN_CHECK(to != nullptr);
    *to = static_cast<std::byte>(letter);
    ring.stage(1);
  };
  const auto take = [](Ring& ring) {
    const std::span<const std::byte> got = ring.front();
    if (got.data() == nullptr) return '-';
    ring.take();
    return static_cast<char>(got[0]);
  };
  stage(producer, 'a');
  stage(producer, 'b');
  TENGEN_CHECK(consumer.is_empty() && take(consumer) == '-');
  producer.publish();
  stage(producer, 'c');
  TENGEN_CHECK(take(consumer) == 'a' && take(consumer) == 'b' && take(consumer) == '-');
  // The consumer dies before release(). Its successor resumes at its position, or starts anew.
  Ring forgetful(memory.data(), 256);
  TENGEN_CHECK(take(forgetful) == 'a');
  Ring next(memory.data(), 256);
  next.resume_consumer(consumer.taken_tail());
  TENGEN_CHECK(take(next) == '-');
  // The producer dies with a staged message.
  Ring heir(memory.data(), 256);
  heir.resume_producer(producer.staged_head());
  TENGEN_CHECK(take(next) == 'c');
  stage(heir, 'd');
  heir.publish();
  TENGEN_CHECK(take(next) == 'd' && take(next) == '-' && next.is_empty());
  // Only release() frees space.
  int num_staged = 0;
  while (heir.reserve(1) != nullptr) {
    heir.stage(1);
    ++num_staged;
  }
  TENGEN_CHECK(num_staged == 14);
  next.release();
  TENGEN_CHECK(heir.reserve(1) != nullptr);
}

}  // namespace

int main() {
  check_resume();
  check_threads();
  check_killed_producer();
  check_full();
  check_damage();
  return 0;
}
