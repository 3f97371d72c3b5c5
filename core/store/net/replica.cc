#include "store/net/replica.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "store/session/channel.h"

namespace tengen::store {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
constexpr uint64_t kPageBytes = 4096;
// Bounds that no store reaches.
constexpr uint64_t kMaxRowBytes = uint64_t{1} << 40;
constexpr uint32_t kMaxPools = 1 << 16;
constexpr uint64_t kMinCompactedBytes = uint64_t{64} << 20;
// The subfolder for files that the checkpoint of another store will replace.
constexpr const char* kReplaced = "log-replaced";

[[noreturn]] void refuse_disk(const std::string& path) {
  throw Error("folder (" + path + ") cannot be written: " + std::strerror(errno) +
              "; free room in its file system");
}

bool tell_shipped(transport::StreamSocket& to) {
  const Shipped message;
  iovec part = transport::part_of(&message, sizeof message);
  return to.send({&part, 1});
}

}  // namespace

// A state or a log that is being written.
struct Replica::File {
  explicit File(const std::string& path) : file(path, O_WRONLY | O_CREAT) {
    if (!file.is_open()) refuse_disk(path);
  }

  void write(uint64_t offset, std::span<const std::byte> bytes) const {
    if (!file.write(offset, bytes)) refuse_disk(file.path());
  }
  void cut(uint64_t num_bytes) const {
    if (!file.cut(num_bytes)) refuse_disk(file.path());
  }
  void sync() const {
    if (!file.sync()) refuse_disk(file.path());
  }

  const DiskFile file;
};

Replica::Replica(std::string directory)
    : directory_(std::move(directory)),
      last_(DurableLog::find_last(directory_)),
      last_mark_(directory_) {
  if (last_) (void)read_state(directory_, last_->state);
  // Where there is no whole checkpoint, files that are not whole stay until there is one.
  last_mark_.put({last_ ? last_->end : LogPlace(), /*is_exact=*/true}, /*is_synced=*/true);
  if (!last_) return;
  remove_others(last_->state, last_->end);
  begin_compaction();
}

Replica::~Replica() = default;

std::optional<LogPlace> Replica::place() {
  const std::scoped_lock lock(mutex_);
  if (!last_) return std::nullopt;
  return last_->end;
}

std::optional<double> Replica::age_s() {
  const std::scoped_lock lock(mutex_);
  if (!last_) return std::nullopt;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto begun = std::chrono::microseconds(last_->mark.begun_us);
  return std::max(0.0, std::chrono::duration<double>(now - begun).count());
}

void Replica::follow(int descriptor) {
  transport::StreamSocket socket(descriptor);
  logs_.clear();
  new_state_.reset();
  bool goes_on = tell_shipped(socket);
  Reply kind;
  while (goes_on && socket.read(&kind, sizeof kind)) {
    switch (kind) {
      case Reply::kRow:
        goes_on = take_row(socket);
        break;
      case Reply::kState:
        goes_on = take_state(socket);
        break;
      case Reply::kLog:
        goes_on = take_log(socket);
        break;
      case Reply::kMark:
        goes_on = take_mark(socket);
        break;
      case Reply::kError:
        take_error(socket);
      default:
        throw Error("message (" + std::to_string(static_cast<uint32_t>(kind)) +
                    ") must be of a replica's store; install the same tengen");
    }
  }
}

bool Replica::take_row(transport::StreamSocket& from) {
  RowMessage message;
  if (!from.read_rest(&message)) return false;
  const uint64_t num_bytes = message.num_bytes;
  check(message.pool < kMaxPools && num_bytes > 0 && num_bytes % kPageBytes == 0 &&
            num_bytes <= kMaxRowBytes && message.place <= UINT32_MAX,
        "row", num_bytes, "must be one of a store's; install the same tengen");
  std::unique_ptr<RowFile>& file = rows_[message.pool];
  uint64_t& known = row_bytes_[message.pool];
  if (!file || known != num_bytes) {
    file = std::make_unique<RowFile>(rows_path(directory_, message.pool), num_bytes, false);
    known = num_bytes;
  }
  if (!buffer_ || buffer_->num_bytes() < num_bytes) {
    buffer_.emplace(transport::SharedMemory::anonymous(num_bytes));
  }
  if (!from.read(buffer_->data(), num_bytes)) return false;
  const std::string reason = file->write(message.place, buffer_->data());
  if (!reason.empty()) throw Error("folder (" + reason + ") must have room; free some");
  has_new_rows_ = true;
  return true;
}

bool Replica::take_state(transport::StreamSocket& from) {
  StateMessage message;
  if (!from.read_rest(&message)) return false;
  sync_rows();
  const std::string path = state_path(directory_, message.number);
  {
    File part(path + ".part");
    part.cut(0);
    if (!copy(from, message.num_bytes, 0, &part)) return false;
    part.sync();
  }
  // A store that went on from an older checkpoint may use the same numbers again.
  if (last_ && message.number <= last_->end.number) set_aside();
  if (!rename_file(path + ".part", path)) refuse_disk(path);
  sync_folder(directory_);
  new_state_ = message.number;
  logs_.clear();
  return true;
}

bool Replica::take_log(transport::StreamSocket& from) {
  LogMessage message;
  if (!from.read_rest(&message)) return false;
  sync_rows();
  std::unique_ptr<File>& log = logs_[message.number];
  if (!log) {
    log = std::make_unique<File>(log_path(directory_, message.number));
    // The log before it must be on the disk before this one has any record.
    sync_logs();
  }
  log->cut(message.offset);
  return copy(from, message.num_bytes, message.offset, log.get());
}

bool Replica::take_mark(transport::StreamSocket& from) {
  MarkMessage message;
  if (!from.read_rest(&message)) return false;
  sync_rows();
  sync_logs();
  logs_.clear();
  {
    const std::scoped_lock lock(mutex_);
    if (trouble_) throw Error(*trouble_);
    check(last_ || new_state_, "mark", message.end.number, "must have a state; connect again");
    last_mark_.put({message.end, /*is_exact=*/true}, /*is_synced=*/true);
    last_ = DurableLog::Last{
        new_state_.value_or(last_ ? last_->state : 0), message.end, message.mark, {}};
  }
  if (std::exchange(new_state_, std::nullopt)) {
    compactor_.reset();
    remove_others(last_->state, last_->end);
    fs::remove_all(directory_ + "/" + kReplaced);
    begin_compaction();
  } else {
    compact_before(message.mark.position);
  }
  return tell_shipped(from);
}

void Replica::take_error(transport::StreamSocket& from) {
  ErrorReply message;
  std::string text;
  if (from.read_rest(&message)) {
    text.resize(std::min(message.num_bytes, kMaxTextBytes));
    if (!from.read(text.data(), text.size())) text.clear();
  }
  throw RefusedError(text.empty() ? "store (gone) ends the replica; start it again" : text);
}

bool Replica::copy(transport::StreamSocket& from, uint64_t num_bytes, uint64_t offset, File* to) {
  std::vector<std::byte> piece(std::min(num_bytes, kPieceBytes));
  for (uint64_t done = 0; done < num_bytes;) {
    const uint64_t count = std::min(num_bytes - done, kPieceBytes);
    if (!from.read(piece.data(), count)) return false;
    to->write(offset + done, std::span(piece).first(count));
    done += count;
  }
  return true;
}

// Called before a log that tells of the rows is synced.
void Replica::sync_rows() {
  if (!std::exchange(has_new_rows_, false)) return;
  for (const auto& [pool, file] : rows_) {
    const std::string reason = file->sync();
    if (!reason.empty()) throw Error("folder (" + reason + ") must be whole; look after the disk");
  }
}

void Replica::sync_logs() {
  for (const auto& [number, log] : logs_) log->sync();
  sync_folder(directory_);
}

void Replica::begin_compaction() {
  const uint64_t state = last_->state;
  compactor_.emplace(
      directory_, state, fs::file_size(state_path(directory_, state)), kMinCompactedBytes,
      /*is_synced=*/true,
      [this](uint64_t number, engine::State* into) {
        DurableLog::apply_whole_log(directory_, number, into);
      },
      [this](const std::string& reason) {
        const std::scoped_lock lock(mutex_);
        trouble_ = reason;
      });
  num_compacted_ = state;
  compact_before(last_->mark.position);
}

// Has the compactor replace logs whose records all lie before `position`.
void Replica::compact_before(uint64_t position) {
  while (num_compacted_ < last_->end.number) {
    const LogReader next(log_path(directory_, num_compacted_ + 1));
    if (next.header().position > position) return;
    const uint64_t num_bytes = fs::file_size(log_path(directory_, num_compacted_));
    compactor_->add(++num_compacted_, num_bytes);
  }
}

// Moves the old checkpoint aside until the new store's checkpoint is whole.
void Replica::set_aside() {
  compactor_.reset();
  last_mark_.put({LogPlace(), /*is_exact=*/true}, /*is_synced=*/true);
  move_files(directory_, directory_ + "/" + kReplaced);
  const std::scoped_lock lock(mutex_);
  last_.reset();
}

// Removes files that this checkpoint does not need.
void Replica::remove_others(uint64_t state, const LogPlace& end) {
  for (const uint64_t number : state_numbers(directory_)) {
    if (number > state) remove_file(state_path(directory_, number));
  }
  remove_files(directory_, state);
  for (uint64_t number = next_number(directory_); --number > end.number;) {
    remove_file(log_path(directory_, number));
  }
  File(log_path(directory_, end.number)).cut(end.offset);
}

}  // namespace tengen::store
