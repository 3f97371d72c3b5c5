#include "inference/row_session.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/owned.h"

namespace tengen {
namespace {

// Kinds of requests and replies.
constexpr uint32_t kOpen = 1, kEvaluate = 2;
constexpr uint32_t kAnswers = 1, kError = 2;
// The data byte of the message that carries the descriptor of the shared memory.
constexpr char kMemory = 'm';

}  // namespace

RowSession::RowSession(int descriptor, int memory_descriptor, const RowColumns& columns,
                       size_t num_rows)
    : descriptor_(descriptor),
      memory_descriptor_(memory_descriptor),
      is_shared_(memory_descriptor >= 0),
      columns_(columns),
      rows_(columns, num_rows, memory_descriptor),
      state_(columns, num_rows, -1) {
  expected_.push_back(transport::part_of(&request_, sizeof request_));
  expect_request();
  own_descriptor(descriptor_);
}

RowSession::~RowSession() {
  close_owned(descriptor_);
  if (memory_descriptor_ >= 0) ::close(memory_descriptor_);
}

std::byte* RowSession::column(size_t i) const {
  return (columns_[i].part == RowPart::kState ? state_ : rows_).column(i);
}

RowSession::Received RowSession::receive() {
  // Receives the header and the rows in one call, because they usually arrive together.
  const size_t num_left = not_received_.size();
  if (!transport::try_receive(descriptor_, &not_received_)) return Received::kEnd;
  const bool had_head = num_left < expected_.size();
  const bool has_head = not_received_.size() < expected_.size();
  if (has_head && !had_head && !begin(request_)) return Received::kEnd;
  if (!not_received_.empty()) return Received::kPart;
  expect_request();
  return request_.kind == kEvaluate ? Received::kRequest : Received::kPart;
}

void RowSession::gather(const RowMemory& batch, size_t first_row) const {
  const std::byte* const is_first = rows_.column(0);
  for (size_t i = 0; i < columns_.size(); ++i) {
    const auto [part, row_bytes] = columns_[i];
    std::byte* const to = batch.column(i) + first_row * row_bytes;
    if (part == RowPart::kInput) {
      std::memcpy(to, rows_.column(i), num_rows() * row_bytes);
    } else if (part == RowPart::kState) {
      std::memcpy(to, state_.column(i), num_rows() * row_bytes);
      for (size_t row = 0; row < num_rows(); ++row) {
        if (is_first[row] != std::byte{0}) std::memset(to + row * row_bytes, 0, row_bytes);
      }
    }
  }
}

void RowSession::scatter(const RowMemory& batch, size_t first_row) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    const auto [part, row_bytes] = columns_[i];
    if (part != RowPart::kOutput && part != RowPart::kState) continue;
    std::memcpy(column(i), batch.column(i) + first_row * row_bytes, num_rows() * row_bytes);
  }
}

void RowSession::begin_episodes() {
  const std::byte* const is_first = rows_.column(0);
  for (size_t i = 0; i < columns_.size(); ++i) {
    const auto [part, row_bytes] = columns_[i];
    if (part != RowPart::kState) continue;
    for (size_t row = 0; row < num_rows(); ++row) {
      if (is_first[row] != std::byte{0}) {
        std::memset(state_.column(i) + row * row_bytes, 0, row_bytes);
      }
    }
  }
}

bool RowSession::answer(int64_t version, int64_t model) {
  reply_ = {kAnswers, 0, request_.number, version, model};
  parts_.assign(1, transport::part_of(&reply_, sizeof reply_));
  for (size_t i = 0; i < columns_.size(); ++i) {
    const auto [part, row_bytes] = columns_[i];
    const bool is_state = part == RowPart::kState && request_.wants_state != 0;
    const size_t num_bytes = num_rows() * row_bytes;
    if (is_shared_) {
      if (is_state) std::memcpy(rows_.column(i), state_.column(i), num_bytes);
    } else if (is_state || part == RowPart::kOutput) {
      parts_.push_back(transport::part_of(column(i), num_bytes));
    }
  }
  // Unsent outputs are not overwritten, because the actor sends its next request after the complete
  // reply, and an earlier request ends the session.
  return send(parts_);
}

void RowSession::refuse(std::string_view reason) {
  if (has_unsent()) return;  // the actor would read the error as a part of the unsent reply
  reply_ = {kError, static_cast<uint32_t>(reason.size()), request_.number, 0, 0};
  parts_ = {transport::part_of(&reply_, sizeof reply_),
            transport::part_of(reason.data(), reason.size())};
  send(parts_);
  unsent_ = {};
}

bool RowSession::send_rest() { return send(unsent_); }

void RowSession::expect_request() {
  expected_.resize(1);
  expected_[0] = transport::part_of(&request_, sizeof request_);
  for (size_t i = 0; i < columns_.size() && !is_shared_; ++i) {
    const auto [part, row_bytes] = columns_[i];
    if (part == RowPart::kFirst || part == RowPart::kInput) {
      expected_.push_back(transport::part_of(rows_.column(i), num_rows() * row_bytes));
    }
  }
  not_received_ = expected_;
}

// Handles the header of a request. Returns false if the header is invalid, or arrives before the
// reply to the previous request has been sent.
bool RowSession::begin(const RowRequest& request) {
  if (request.kind == kOpen) return is_shared_ && send_memory();
  return request.kind == kEvaluate && !has_unsent() && !is_pending;
}

bool RowSession::send_memory() {
  if (memory_descriptor_ < 0) return true;
  char byte = kMemory;
  iovec part = transport::part_of(&byte, 1);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const passed = CMSG_FIRSTHDR(&message);
  passed->cmsg_level = SOL_SOCKET;
  passed->cmsg_type = SCM_RIGHTS;
  passed->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(passed), &memory_descriptor_, sizeof(int));
  ssize_t sent;
  do {
    sent = sendmsg(descriptor_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  ::close(memory_descriptor_);
  memory_descriptor_ = -1;
  return sent == 1;
}

bool RowSession::send(std::span<iovec> parts) {
  const bool is_open = transport::try_send(descriptor_, &parts);
  unsent_ = parts;
  return is_open;
}

}  // namespace tengen
