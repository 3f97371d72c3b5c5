#include "store/session/stream_messages.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/error.h"
#include "store/session/encoding.h"

namespace tengen::store {
namespace {

// A message is its kind, a count where it has one, other fields, and what it counts.
template <class Kind>
struct Shape {
  Kind kind;
  size_t num_bytes;    // without what is counted
  size_t value_bytes;  // of one of those counted; 0: it counts nothing
};
constexpr Shape<Request> kRequests[] = {
    {Request::kInsert, sizeof(InsertMessage), sizeof(double)},
    {Request::kRelease, sizeof(Release), 0},
    {Request::kSample, sizeof(SampleMessage), 0},
    {Request::kAck, sizeof(Ack), sizeof(double)},
    {Request::kGiveBack, sizeof(GiveBack), 0},
    {Request::kSteps, sizeof(Steps), 0},
    {Request::kFlush, sizeof(Flush), 0},
};
constexpr Shape<Reply> kReplies[] = {
    {Reply::kBatch, sizeof(Batch), sizeof(int64_t) + sizeof(double)},
    {Reply::kError, sizeof(ErrorReply), 1},
    {Reply::kFlushed, sizeof(Flushed), 0},
    {Reply::kWaits, sizeof(Waits), 1},
};

template <class Kind>
bool read_message(std::span<const Shape<Kind>> known, transport::StreamSocket& from,
                  uint32_t max_count, std::vector<std::byte>* message) {
  Kind kind;
  if (!from.read(&kind, sizeof kind)) return false;
  const auto shape = std::find_if(known.begin(), known.end(),
                                  [&](const Shape<Kind>& one) { return one.kind == kind; });
  if (shape == known.end()) {
    throw Error("message (" + std::to_string(static_cast<uint32_t>(kind)) +
                ") must be one of this session's; the other side is of another version");
  }
  message->resize(shape->num_bytes);
  std::byte* const rest = put(message->data(), kind);
  if (!from.read(rest, shape->num_bytes - sizeof kind)) return false;
  if (shape->value_bytes == 0) return true;
  const auto count = read<uint32_t>(std::span(*message).subspan(sizeof kind));
  if (count > max_count) {
    throw Error("message (" + std::to_string(count) + " values) must have at most " +
                std::to_string(max_count) + "; the other side is of another version");
  }
  message->resize(shape->num_bytes + count * shape->value_bytes);
  return from.read(message->data() + shape->num_bytes, count * shape->value_bytes);
}

}  // namespace

bool read_request(transport::StreamSocket& from, uint32_t max_count,
                  std::vector<std::byte>* message) {
  return read_message<Request>(kRequests, from, max_count, message);
}

bool read_reply(transport::StreamSocket& from, uint32_t max_count,
                std::vector<std::byte>* message) {
  return read_message<Reply>(kReplies, from, max_count, message);
}

}  // namespace tengen::store
