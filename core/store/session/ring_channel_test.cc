#include "store/session/ring_channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/testing.h"
#include "store/session/ring_memory.h"
#include "transport/ring.h"
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

// A channel that cannot be made leaves no connection behind, which would keep its session.
void check_refused() {
  const int descriptor = dead_socket();
  TENGEN_CHECK(throws([&] { RingChannel({descriptor, "/nowhere/session", {4096, 4096}}); }));
  TENGEN_CHECK(fcntl(descriptor, F_GETFD) < 0);
}

// A forked process moves nothing in the rings, which are its parent's too.
void check_forked() {
  std::string folder = (std::filesystem::temp_directory_path() / "tengen-XXXXXX").string();
  TENGEN_CHECK(mkdtemp(folder.data()) != nullptr);
  const SessionLayout layout{4096, 4096};
  const std::string path = folder + "/session";
  const transport::SharedMemory memory = transport::SharedMemory::create(path, layout.num_bytes());
  reinterpret_cast<SessionHeader*>(memory.data())->version.store(kRingVersion);
  transport::Ring replies = layout.replies(memory.data());
  const uint64_t reply = 7;
  std::memcpy(replies.reserve(sizeof reply), &reply, sizeof reply);
  replies.commit(sizeof reply);
  RingChannel channel({dead_socket(), path, layout});
  const pid_t child = fork();
  if (child == 0) {
    const bool is_refused = throws([&] { channel.peek_reply(); }) &&
                            throws([&] { channel.pop_reply(); }) &&
                            throws([&] { channel.wait_for_reply(kAtOnce); }) &&
                            throws([&] { channel.ring(); }) && throws([&] { channel.waits(); });
    _exit(is_refused ? 0 : 1);
  }
  int status = -1;
  TENGEN_CHECK(waitpid(child, &status, 0) == child && status == 0);
  TENGEN_CHECK(channel.peek_reply().size() == sizeof reply);
  channel.pop_reply();
  TENGEN_CHECK(channel.peek_reply().empty());
  std::filesystem::remove_all(folder);
}

}  // namespace

int main() {
  check_forked();
  check_refused();
  check_answer_while_away();
  return 0;
}
