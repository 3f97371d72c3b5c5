#pragma once
// Reading the messages of a session from a stream.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/session/messages.h"
#include "transport/stream_socket.h"

namespace tengen::store {

// Read the next message, without the steps that may follow it. Block; false where the stream has
// ended or is broken. Throw Error for what is no message of a stream, and for one that counts more
// than `max_count` priorities, samples or bytes of text.
bool read_request(transport::StreamSocket& from, uint32_t max_count,
                  std::vector<std::byte>* message);
bool read_reply(transport::StreamSocket& from, uint32_t max_count, std::vector<std::byte>* message);

}  // namespace tengen::store
