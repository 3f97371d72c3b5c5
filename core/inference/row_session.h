#pragma once
// The side of central inference of one session: an actor's rows and their state.

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

// The heads of messages, as in tengen.inference.central.messages, which says what follows them.
// Hosts of the other byte order are none of ours.
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

// Reads requests and writes replies, and never blocks. For one thread.
class RowSession {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Received { kPart, kRequest, kEnd };

  // Takes over the socket to the actor and the descriptor of the memory that both share, -1 where
  // rows travel on the stream. Throws Error where there is no memory.
  RowSession(int descriptor, int memory_descriptor, const RowColumns& columns, size_t num_rows);
  RowSession(const RowSession&) = delete;
  RowSession& operator=(const RowSession&) = delete;
  ~RowSession();

  int descriptor() const { return descriptor_; }
  size_t num_rows() const { return rows_.num_rows(); }
  // The actor's array, but of the state the session's own, which a reply has a copy of where the
  // request asked for one.
  std::byte* column(size_t i) const;

  // Reads what is there. kRequest: a whole request to evaluate is; kEnd: the actor has gone, or
  // sent what is no request.
  Received receive();
  // Copies the rows behind others of a batch; the state of rows whose episode begins is zero there.
  void gather(const RowMemory& batch, size_t first_row) const;
  // Takes the answers and the next state from there.
  void scatter(const RowMemory& batch, size_t first_row);
  // Zeroes the state of rows whose episode begins, where the rows are evaluated in place.
  void begin_episodes();

  // Sends the answers; false where the actor has gone.
  bool answer(int64_t version, int64_t model);
  // Sends why there is none; the actor then ends the session.
  void refuse(std::string_view reason);
  // Whether a part of a reply waits for room in the socket.
  bool has_unsent() const { return !unsent_.empty(); }
  // Sends more of it; false where the actor has gone.
  bool send_rest();

  // For whoever fires batches: when the request that waits came, and whether one does.
  Clock::time_point asked_at{};
  bool is_pending = false;
  // For whoever waits for descriptors: whether room to write is waited for.
  bool waits_for_room = false;

 private:
  void expect_request();
  bool begin(const RowRequest& request);
  bool send_memory();
  bool send(std::span<iovec> parts);

  const int descriptor_;
  int memory_descriptor_;  // -1: there is none, or it was passed on
  const bool is_shared_;
  const RowColumns& columns_;
  RowMemory rows_;
  RowMemory state_;  // of its arrays those of the state are used, the others are never touched

  RowRequest request_{};
  RowReply reply_{};
  std::vector<iovec> expected_;    // of a request
  std::span<iovec> not_received_;  // of them
  std::vector<iovec> parts_;       // of a reply
  std::span<iovec> unsent_;        // of them
};

}  // namespace tengen
