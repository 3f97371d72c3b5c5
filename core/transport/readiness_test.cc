#include "transport/readiness.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/testing.h"

using namespace tengen;
using transport::Readiness;

namespace {

struct Pair {
  Pair() { TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0); }
  ~Pair() {
    ::close(ends[0]);
    if (ends[1] >= 0) ::close(ends[1]);
  }
  void send() const { TENGEN_CHECK(::write(ends[1], "x", 1) == 1); }
  void hang_up() {
    ::close(ends[1]);
    ends[1] = -1;
  }
  int ends[2];
};

std::map<uint64_t, Readiness::Event> told(Readiness& readiness) {
  std::map<uint64_t, Readiness::Event> all;
  for (const auto& event : readiness.wait(0)) TENGEN_CHECK(all.emplace(event.key, event).second);
  return all;
}

// A descriptor with unread bytes is reported until they are read; one without is not.
void check_reads() {
  std::vector<Pair> pairs(50);
  Readiness readiness;
  for (size_t i = 0; i < pairs.size(); ++i) readiness.add(pairs[i].ends[0], 100 + i);
  TENGEN_CHECK(told(readiness).empty());
  for (size_t i = 0; i < pairs.size(); i += 3) pairs[i].send();
  for (int time = 0; time < 2; ++time) {
    const auto events = told(readiness);
    TENGEN_CHECK(events.size() == 17);
    for (const auto& [key, event] : events) {
      TENGEN_CHECK((key - 100) % 3 == 0 && event.can_read && !event.can_write);
    }
  }
  char byte;
  for (size_t i = 0; i < pairs.size(); i += 3)
    TENGEN_CHECK(::read(pairs[i].ends[0], &byte, 1) == 1);
  TENGEN_CHECK(told(readiness).empty());
}

// A descriptor is readable after the other side has closed, and the read reports the end.
void check_ends() {
  Pair pair, other;
  Readiness readiness;
  readiness.add(pair.ends[0], 1);
  readiness.add(other.ends[0], 2);
  pair.hang_up();
  const auto events = told(readiness);
  TENGEN_CHECK(events.size() == 1 && events.at(1).can_read);
  readiness.remove(pair.ends[0]);
  TENGEN_CHECK(told(readiness).empty());
  other.send();
  TENGEN_CHECK(told(readiness).contains(2));
}

void check_room() {
  Pair pair;
  Readiness readiness;
  readiness.add(pair.ends[0], 7);
  TENGEN_CHECK(told(readiness).empty());
  readiness.want_room(pair.ends[0], 7, true);
  TENGEN_CHECK(told(readiness).at(7).can_write && !told(readiness).at(7).can_read);
  std::vector<char> bytes(1 << 20);
  while (send(pair.ends[0], bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
  TENGEN_CHECK(told(readiness).empty());
  pair.send();
  TENGEN_CHECK(told(readiness).at(7).can_read);
  readiness.want_room(pair.ends[0], 7, false);
  TENGEN_CHECK(!told(readiness).at(7).can_write);
}

// A wait ends after its timeout, or immediately if a descriptor is ready.
void check_waits() {
  Pair pair;
  Readiness readiness;
  readiness.add(pair.ends[0], 1);
  TENGEN_CHECK(readiness.wait(0.0001).empty());
  pair.send();
  TENGEN_CHECK(readiness.wait(-1).size() == 1);
}

}  // namespace

int main() {
  check_reads();
  check_ends();
  check_room();
  check_waits();
  return 0;
}
