#include "store/session/ring_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/testing.h"
#include "store/session/ring_memory.h"
#include "transport/shared_memory.h"

using namespace tengen;
using namespace tengen::store;

namespace {

// A client's end of a socket whose other end is closed.
int dead_socket() {
  int ends[2];
  TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  ::close(ends[0]);
  return ends[1];
}

// The next server answers before the client has come back to it, so that no byte can tell the
// client: it must look once more before it sleeps.
void check_answer_while_away() {
  std::string folder = (std::filesystem::temp_directory_path() / "tengen-XXXXXX").string();
  TENGEN_CHECK(mkdtemp(folder.data()) != nullptr);
  const SessionLayout layout{4096, 4096};
  const std::string path = folder + "/session";
  const transport::SharedMemory memory = transport::SharedMemory::create(path, layout.num_bytes());
  auto* const header = reinterpret_cast<SessionHeader*>(memory.data());
  header->version.store(kRingVersion);
  int ends[2] = {-1, -1};
  const auto reconnect = [&] {
    header->num_applied.store(1);
    wake(&header->client_sleeps, -1);
    TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    return ends[1];
  };
  RingChannel channel({dead_socket(), path, layout, reconnect, std::chrono::seconds(60)});
  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  TENGEN_CHECK(channel.send_one(uint64_t{7}, deadline, Urgency::kLater));
  TENGEN_CHECK(channel.wait_for_all(deadline));
  TENGEN_CHECK(std::chrono::steady_clock::now() < deadline);
  ::close(ends[0]);
  std::filesystem::remove_all(folder);
}

}  // namespace

int main() {
  check_answer_while_away();
  return 0;
}
