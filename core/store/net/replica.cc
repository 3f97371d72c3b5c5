#include "store/net/replica.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "store/session/channel.h"
#include "store/session/encoding.h"

namespace tengen::store {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
constexpr uint64_t kPageBytes = 4096;
// Limits on the sizes in messages, to reject invalid ones. No real store reaches them.
constexpr uint64_t kMaxRowBytes = uint64_t{1} << 40;
constexpr uint32_t kMaxPools = 1 << 16;

template <class Message>
bool send_message(transport::StreamSocket& to, const Message& message,
                  std::span<const Row> rows = {}) {
  iovec parts[] = {transport::part_of(&message, sizeof message),
                   transport::part_of(rows.data(), rows.size_bytes())};
  return to.send(parts);
}

// Reads `num_bytes` bytes in chunks, so that memory grows only with the bytes that have arrived.
// Returns false if the stream has ended.
bool read_bytes(transport::StreamSocket& from, uint64_t num_bytes, std::vector<std::byte>* to) {
  to->clear();
  while (to->size() < num_bytes) {
    const uint64_t done = to->size();
    to->resize(done + std::min(num_bytes - done, kPieceBytes));
    if (!from.read(to->data() + done, to->size() - done)) return false;
  }
  return true;
}

}  // namespace

Replica::Replica(std::string directory) : directory_(std::move(directory)) {
  const std::optional<DurableLog::Last> last = DurableLog::find_last(directory_);
  if (!last) return;
  (void)read_state(directory_, last->state);
  begun_us_ = last->mark.begun_us;
}

std::optional<int64_t> Replica::begun_us() {
  const std::scoped_lock lock(mutex_);
  return begun_us_;
}

std::optional<double> Replica::age_s() {
  const std::optional<int64_t> begun_us = this->begun_us();
  if (!begun_us) return std::nullopt;
  return std::max(0.0, static_cast<double>(now_us() - *begun_us) / 1e6);
}

void Replica::follow(int descriptor) {
  transport::StreamSocket socket{transport::Connection(descriptor)};
  log_.reset();
  bool goes_on = send_message(socket, Shipped());
  std::vector<std::byte> message;
  while (goes_on && read_message(socket, sizeof(Text) + kMaxTextBytes, &message)) {
    const auto kind = read<Reply>(message);
    check(log_ || kind == Reply::kState || kind == Reply::kError, "message",
          static_cast<uint32_t>(kind), "must come after a replica's state; connect again");
    switch (kind) {
      case Reply::kState:
        goes_on = take_state(socket, read<StateMessage>(message));
        break;
      case Reply::kRow:
        goes_on = take_row(socket, read<RowMessage>(message).row);
        break;
      case Reply::kRecords:
        goes_on = read_bytes(socket, read<RecordsMessage>(message).record_bytes, &records_);
        if (goes_on) log_->append(records_);
        break;
      case Reply::kMark:
        goes_on = take_mark(socket, read<MarkMessage>(message));
        break;
      case Reply::kError:
        throw RefusedError(text_of(message));
      default:
        throw Error("message (" + std::to_string(static_cast<uint32_t>(kind)) +
                    ") must be of a replica's store; install the same tengen");
    }
  }
  log_.reset();
}

bool Replica::take_state(transport::StreamSocket& from, const StateMessage& message) {
  check(message.num_pools > 0 && message.num_pools < kMaxPools, "pools", message.num_pools,
        "must be a store's; install the same tengen");
  std::vector<uint64_t> row_bytes(message.num_pools);
  if (!from.read(row_bytes.data(), row_bytes.size() * sizeof(uint64_t))) return false;
  if (!read_bytes(from, message.record_bytes, &records_)) return false;
  engine::State state;
  state.apply(records_);
  uint64_t largest = 0;
  for (uint32_t pool = 0; pool < row_bytes.size(); ++pool) {
    const uint64_t num_bytes = row_bytes[pool];
    check(num_bytes > 0 && num_bytes % kPageBytes == 0 && num_bytes <= kMaxRowBytes, "row",
          num_bytes, "must be one of a store's; install the same tengen");
    largest = std::max(largest, num_bytes);
    Rows& rows = rows_[pool];
    if (rows.row_bytes == num_bytes) continue;
    rows = {
        std::make_unique<RowFile>(rows_path(directory_, pool), num_bytes, false), num_bytes, {}};
  }
  buffer_.emplace(transport::SharedMemory::anonymous(largest));
  // Closes the log, to remove data that an earlier connection left after the last checkpoint.
  log_.reset();
  const std::optional<DurableLog::Last> last = DurableLog::find_last(directory_);
  remove_files(directory_, last ? last->end.number + 1 : 0);
  log_.emplace(directory_, state, DurableLog::kLogBytes, /*is_exact=*/true);
  const std::vector<Row> lacking = find_lacking(state);
  has_new_rows_ = true;  // rows written by an earlier process might not be on disk
  return send_message(from, Lacks{.count = lacking.size()}, lacking);
}

std::vector<Row> Replica::find_lacking(const engine::State& state) {
  std::vector<Row> lacking;
  for (uint32_t pool = 0; pool < state.chunks.size(); ++pool) {
    for (const engine::SavedChunk& chunk : state.chunks[pool]) {
      const Row row{pool, chunk.place, chunk.checksum};
      if (chunk.place != engine::kNowhere && !has(row)) lacking.push_back(row);
    }
  }
  return lacking;
}

uint32_t& Replica::checksum_of(const Row& row) {
  const auto rows = rows_.find(row.pool);
  check(rows != rows_.end() && row.place <= engine::kMaxItems, "row", row.place,
        "must be one of a store's; install the same tengen");
  std::vector<uint32_t>& checksums = rows->second.checksums;
  if (row.place >= checksums.size()) checksums.resize(size_t{row.place} + 1);
  return checksums[row.place];
}

// Whether the folder contains `row`. Reads a row that an earlier process wrote to verify it,
// because it may belong to an incomplete checkpoint.
bool Replica::has(const Row& row) {
  uint32_t& checksum = checksum_of(row);
  const Rows& of = rows_[row.pool];
  if (checksum == 0) checksum = of.file->try_read(row.place, buffer_->data()).value_or(0);
  return checksum == row.checksum;
}

bool Replica::take_row(transport::StreamSocket& from, const Row& row) {
  uint32_t& checksum = checksum_of(row);
  Rows& rows = rows_[row.pool];
  if (!from.read(buffer_->data(), rows.row_bytes)) return false;
  checksum = 0;
  rows.file->write(row.place, buffer_->data());
  checksum = row.checksum;
  has_new_rows_ = true;
  return true;
}

bool Replica::take_mark(transport::StreamSocket& from, const MarkMessage& message) {
  if (!read_bytes(from, message.record_bytes, &records_)) return false;
  // Syncs the rows first, because they must be on disk before the log that refers to them.
  if (std::exchange(has_new_rows_, false)) {
    for (const auto& [pool, rows] : rows_) rows.file->sync();
  }
  if (!log_->mark(message.mark.position, message.mark.begun_us, records_)) {
    throw Error("folder (" + directory_ + ") cannot store the log: " + log_->trouble());
  }
  {
    const std::scoped_lock lock(mutex_);
    begun_us_ = message.mark.begun_us;
  }
  return send_message(from, Shipped());
}

}  // namespace tengen::store
