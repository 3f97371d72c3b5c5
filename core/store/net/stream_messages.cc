#include "store/net/stream_messages.h"

#include <span>
#include <string>

#include "base/error.h"
#include "store/service/encoding.h"

namespace tengen::store {
namespace {

// A message is its kind, a count where it has one, other fields, and what it counts.
struct Shape {
  size_t num_bytes = 0;    // without what is counted; 0: there is no such message
  size_t value_bytes = 0;  // of one of those counted
};

Shape shape_of(Request kind) {
  switch (kind) {
    case Request::kInsert:
      return {sizeof(InsertMessage), sizeof(double)};
    case Request::kRelease:
      return {sizeof(Release), 0};
    case Request::kSample:
      return {sizeof(SampleMessage), 0};
    case Request::kAck:
      return {sizeof(Ack), sizeof(double)};
    case Request::kGiveBack:
      return {sizeof(GiveBack), 0};
    case Request::kSteps:
      return {sizeof(Steps), 0};
    case Request::kFlush:
      return {sizeof(Flush), 0};
    default:
      return {};
  }
}

Shape shape_of(Reply kind) {
  switch (kind) {
    case Reply::kBatch:
      return {sizeof(Batch), sizeof(int64_t) + sizeof(double)};
    case Reply::kError:
      return {sizeof(ErrorReply), 1};
    case Reply::kFlushed:
      return {sizeof(Flushed), 0};
    case Reply::kWaits:
      return {sizeof(Waits), 1};
    default:
      return {};
  }
}

template <class Kind>
bool read_message(transport::StreamSocket& from, uint32_t max_count,
                  std::vector<std::byte>* message) {
  Kind kind;
  if (!from.read(&kind, sizeof kind)) return false;
  const Shape shape = shape_of(kind);
  if (shape.num_bytes == 0) {
    throw Error("message (" + std::to_string(static_cast<uint32_t>(kind)) +
                ") must be one of this session's; the other side is of another version");
  }
  message->resize(shape.num_bytes);
  std::byte* const rest = put(message->data(), kind);
  if (!from.read(rest, shape.num_bytes - sizeof kind)) return false;
  if (shape.value_bytes == 0) return true;
  const auto count = read<uint32_t>(std::span(*message).subspan(sizeof kind));
  if (count > max_count) {
    throw Error("message (" + std::to_string(count) + " values) must have at most " +
                std::to_string(max_count) + "; the other side is of another version");
  }
  message->resize(shape.num_bytes + count * shape.value_bytes);
  return from.read(message->data() + shape.num_bytes, count * shape.value_bytes);
}

}  // namespace

bool read_request(transport::StreamSocket& from, uint32_t max_count,
                  std::vector<std::byte>* message) {
  return read_message<Request>(from, max_count, message);
}

bool read_reply(transport::StreamSocket& from, uint32_t max_count,
                std::vector<std::byte>* message) {
  return read_message<Reply>(from, max_count, message);
}

}  // namespace tengen::store
