// The fuzz target for messages that an actor sends to central inference.

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/error.h"
#include "fuzz/target.h"
#include "inference/row_session.h"

namespace tengen::fuzz {
namespace {

constexpr size_t kNumRows = 3;

RowColumns columns() {
  return RowColumns({{RowPart::kFirst, 1},
                     {RowPart::kInput, 8},
                     {RowPart::kInput, 3},
                     {RowPart::kOutput, 16},
                     {RowPart::kState, 8}});
}

// Drives a session as the server does, and replies to every request.
void serve(std::string_view bytes) {
  const unsigned how = take_byte(&bytes);
  int ends[2];
  expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "a pair of sockets");
  try {
    const RowColumns of = columns();
    RowMemory batch(of, 2 * kNumRows, -1);
    RowSession session(ends[1], -1, of, kNumRows);
    bool goes_on = true;
    while (goes_on && !bytes.empty()) {
      // Sends the bytes in pieces, as they may arrive from a network.
      const size_t size = how % 2 == 0 ? bytes.size() : how % 29 + 1;
      const std::string_view piece = bytes.substr(0, size);
      const ssize_t sent = ::send(ends[0], piece.data(), piece.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      bytes.remove_prefix(static_cast<size_t>(sent));
      for (int i = 0; i < 4 && goes_on; ++i) {
        const RowSession::Received received = session.receive();
        goes_on = received != RowSession::Received::kEnd;
        if (received != RowSession::Received::kRequest) continue;
        session.is_pending = true;
        session.gather(batch, kNumRows);
        session.scatter(batch, kNumRows);
        session.begin_episodes();
        session.is_pending = false;
        goes_on = session.answer(1, 2);
      }
    }
    session.refuse("the end");
  } catch (const Error&) {
  }
  ::close(ends[0]);
}

std::vector<std::string> seeds() {
  std::string request;
  for (uint64_t number = 1; number < 4; ++number) {
    const RowRequest head{2, static_cast<uint32_t>(number % 2), number};
    request.append(reinterpret_cast<const char*>(&head), sizeof head);
    request.append(kNumRows * (1 + 8 + 3), '\1');
  }
  return {std::string(1, '\0') + request, "\7" + request};
}

}  // namespace

std::vector<Target> row_targets() { return {{"row_session", serve, seeds}}; }

}  // namespace tengen::fuzz
