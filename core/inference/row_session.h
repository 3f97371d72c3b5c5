#pragma once
// The server side of one inference session: an actor's rows and their recurrent state.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "inference/row_memory.h"
#include "transport/stream_socket.h"

namespace tengen {

// The headers of requests and replies. tengen.inference.central.messages documents the complete
// messages. Only little-endian hosts are supported.
struct RowRequest {
  uint32_t kind;
  uint32_t wants_state;
  uint64_t number;
};
struct RowReply {
  uint32_t kind;
  uint32_t num_bytes;
  uint64_t number;
  int64_t version;
  int64_t model;
};
static_assert(sizeof(RowRequest) == 16 && sizeof(RowReply) == 32);

// A session that reads requests and writes replies without blocking. Single-threaded.
class RowSession {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Received { kPart, kRequest, kEnd };

  // Takes ownership of `descriptor`, the socket to the actor, and of `memory_descriptor`, the
  // shared memory, or -1 if rows are sent through the socket. Throws Error if memory is exhausted.
  RowSession(int descriptor, int memory_descriptor, const RowColumns& columns, size_t num_rows);
  RowSession(const RowSession&) = delete;
  RowSession& operator=(const RowSession&) = delete;
  ~RowSession();

  int descriptor() const { return descriptor_; }
  size_t num_rows() const { return rows_.num_rows(); }
  // Returns array `i`. State arrays stay in the session between requests. A reply contains copies
  // of them only if the request wants state.
  std::byte* column(size_t i) const;

  // Reads the available bytes. Returns kRequest if a complete request is ready to evaluate, kEnd if
  // the actor has disconnected or sent an invalid request, otherwise kPart.
  Received receive();
  // Copies the rows to `batch`, starting at `first_row`. Rows that start an episode get zero state.
  void gather(const RowMemory& batch, size_t first_row) const;
  // Copies the outputs and the next recurrent state from `batch`, starting at `first_row`.
  void scatter(const RowMemory& batch, size_t first_row);
  // Zeroes the recurrent state of rows that start an episode, before an evaluation in place.
  void begin_episodes();

  // Sends the outputs to the actor. Returns false if the actor has disconnected.
  bool answer(int64_t version, int64_t model);
  // Sends an error with `reason` instead of outputs; the actor then ends the session.
  void refuse(std::string_view reason);
  // Returns whether part of a reply is still unsent because the socket was full.
  bool has_unsent() const { return !unsent_.empty(); }
  // Sends more of the unsent reply. Returns false if the actor has disconnected.
  bool send_rest();

  // For scheduling: the arrival time of the last request, and whether it is pending.
  Clock::time_point asked_at{};
  bool is_pending = false;
  // For polling: whether the server waits until the socket is writable.
  bool waits_for_room = false;

 private:
  void expect_request();
  bool begin(const RowRequest& request);
  bool send_memory();
  bool send(std::span<iovec> parts);

  const int descriptor_;
  int memory_descriptor_;  // -1 if there is none or it has been sent
  const bool is_shared_;
  const RowColumns& columns_;
  RowMemory rows_;
  RowMemory state_;  // only the state arrays are used

  RowRequest request_{};
  RowReply reply_{};
  std::vector<iovec> expected_;    // all parts of a request
  std::span<iovec> not_received_;  // suffix of expected_ that has not arrived
  std::vector<iovec> parts_;       // all parts of a reply
  std::span<iovec> unsent_;        // suffix of parts_ that is not sent
};

}  // namespace tengen
