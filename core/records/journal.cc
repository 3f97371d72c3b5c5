#include "records/journal.h"

#include <fcntl.h>

#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/thread.h"
#include "records/fault.h"
#include "records/little_endian.h"

namespace tengen {
namespace {

constexpr std::string_view kMagic = "TENGENJL";
constexpr size_t kFixedHeaderBytes = 20;
// The first bytes of every frame, with which a reader finds the next complete frame after damage.
constexpr std::string_view kFrameMark = "TNGF";
constexpr size_t kFrameHeaderBytes = 12;
constexpr uint32_t kMaxFrameBytes = 1u << 30;
constexpr uint32_t kMaxMetaBytes = 1u << 20;
// The maximum total length of frames with a wrong checksum, as a multiple of the file size. Real
// damage stays below this limit, which bounds the time to read a malicious file.
constexpr uint64_t kMaxClaims = 16;

std::string header_bytes(const std::string& meta) {
  std::string header(kMagic);
  ByteWriter out(&header);
  out.u32(kJournalSchema);
  out.u32(static_cast<uint32_t>(meta.size()));
  out.u32(crc32c(meta, crc32c(header)));
  return header + meta;
}

void append_frame(std::string* out, std::string_view payload) {
  std::string length;
  ByteWriter(&length).u32(static_cast<uint32_t>(payload.size()));
  out->append(kFrameMark);
  out->append(length);
  ByteWriter(out).u32(crc32c(payload, crc32c(length)));
  out->append(payload);
}

// Finds the complete frames in a journal. Throws Error if too many marks start no complete frame.
class FrameFinder {
 public:
  FrameFinder(const std::string& path, std::string_view file)
      : path_(path), file_(file), claims_left_(kMaxClaims * file.size()) {}

  // Returns the payload of the frame at position `at`, or nullopt if no complete frame is there.
  std::optional<std::string_view> payload_at(size_t at) {
    const auto length = claim_at(at);
    if (!length) return std::nullopt;
    const std::string_view numbers = file_.substr(at + kFrameMark.size(), 8);
    const uint32_t crc = ByteReader(numbers.substr(4), "frame").u32();
    const std::string_view payload = file_.substr(at + kFrameHeaderBytes, *length);
    if (crc32c(payload, crc32c(numbers.substr(0, 4))) == crc) return payload;
    if (*length > claims_left_) {
      throw Error("journal (" + path_ + ") has more marks than frames; restore it from a copy");
    }
    claims_left_ -= *length;
    return std::nullopt;
  }

  // Returns the position of the first complete frame from `at` on, or the file size if none.
  size_t next_frame(size_t at) {
    for (at = file_.find(kFrameMark, at); at != std::string_view::npos;
         at = file_.find(kFrameMark, at + 1)) {
      if (payload_at(at)) return at;
    }
    return file_.size();
  }

 private:
  // Returns the payload length in the frame header at `at`, or nullopt if it exceeds the file.
  std::optional<uint32_t> claim_at(size_t at) const {
    if (file_.size() - at < kFrameHeaderBytes) return std::nullopt;
    if (file_.substr(at, kFrameMark.size()) != kFrameMark) return std::nullopt;
    const uint32_t length = ByteReader(file_.substr(at + kFrameMark.size(), 4), "frame").u32();
    if (length == 0 || length > file_.size() - at - kFrameHeaderBytes) return std::nullopt;
    return length;
  }

  const std::string& path_;
  const std::string_view file_;
  uint64_t claims_left_;
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Creates a journal under a temporary name and renames it when its header is durable.
std::unique_ptr<DiskFile> create_journal(const std::string& path, const std::string& meta) {
  if (meta.size() > kMaxMetaBytes) {
    throw Error("meta (" + std::to_string(meta.size()) +
                " bytes) must be at most 1 MiB; shorten it");
  }
  if (std::filesystem::exists(path)) {
    throw Error("journal (" + path + ") must not exist yet; open a new incarnation");
  }
  auto file = std::make_unique<DiskFile>(path + ".tmp", O_RDWR | O_CREAT | O_TRUNC,
                                         /*is_past_cache=*/false, 0666);
  file->write(0, bytes_of(header_bytes(meta)));
  fault_point("journal.header_written");
  file->sync();
  fault_point("journal.header_synced");
  file->rename(path);
  sync_folder_of(path);
  fault_point("journal.renamed");
  return file;
}

}  // namespace

Journal::Journal(const std::string& path, const std::string& meta, uint64_t max_queue_bytes)
    : path_(path),
      max_queue_bytes_(max_queue_bytes),
      file_(create_journal(path, meta)),
      size_bytes_(kFixedHeaderBytes + meta.size()),
      writer_(start_thread("a journal", [this] { write_loop(); })) {}

Journal::~Journal() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    to_writer_.notify_one();
  }
  if (writer_.joinable()) writer_.join();
}

void Journal::append(std::string payload) {
  if (payload.empty() || payload.size() > kMaxFrameBytes) {
    throw Error("frame (" + std::to_string(payload.size()) +
                " bytes) must be 1 byte to 1 GiB; split it");
  }
  std::unique_lock lock(mutex_);
  to_callers_.wait(lock, [this] { return closing_ || error_ || queue_bytes_ < max_queue_bytes_; });
  if (closing_) throw Error("journal (" + path_ + ") is closed; open a new incarnation");
  if (error_) std::rethrow_exception(error_);
  queue_bytes_ += payload.size();
  queue_.push_back(std::move(payload));
  ++num_appended_;
  to_writer_.notify_one();
}

void Journal::flush() {
  std::unique_lock lock(mutex_);
  error_ = nullptr;
  const uint64_t target = num_appended_;
  to_writer_.notify_one();
  to_callers_.wait(lock, [&] { return num_durable_ >= target || error_; });
  if (num_durable_ < target) std::rethrow_exception(error_);
}

void Journal::close() {
  flush();
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    to_writer_.notify_one();
    to_callers_.notify_all();
  }
  if (writer_.joinable()) writer_.join();
}

uint64_t Journal::num_appended() const {
  const std::scoped_lock lock(mutex_);
  return num_appended_;
}

uint64_t Journal::num_durable() const {
  const std::scoped_lock lock(mutex_);
  return num_durable_;
}

// Writes and syncs a group of frames. Returns the error, or null. The caller must write a failed
// group again, not only sync it: the system may drop pages after a failed sync, so a second sync
// could succeed although the data is lost.
std::exception_ptr Journal::write_group(const std::deque<std::string>& group) {
  std::string bytes;
  try {
    for (const std::string& payload : group) append_frame(&bytes, payload);
    fault_point("journal.group_gathered");
    const size_t half = bytes.size() / 2;  // so that a test can kill the process in between
    file_->write(size_bytes_, bytes_of(bytes).first(half));
    fault_point("journal.group_half_written");
    file_->write(size_bytes_ + half, bytes_of(bytes).subspan(half));
    fault_point("journal.group_written");
    file_->sync();
    fault_point("journal.group_synced");
  } catch (...) {
    return std::current_exception();
  }
  size_bytes_ += bytes.size();
  return nullptr;
}

void Journal::write_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    to_writer_.wait(lock, [this] { return closing_ || (!queue_.empty() && !error_); });
    if (queue_.empty() || error_) return;
    std::deque<std::string> group = std::exchange(queue_, {});
    lock.unlock();
    std::exception_ptr error = write_group(group);
    lock.lock();
    if (!error) {
      num_durable_ += group.size();
      for (const std::string& payload : group) queue_bytes_ -= payload.size();
    } else {
      error_ = std::move(error);
      for (std::string& payload : queue_) group.push_back(std::move(payload));
      queue_ = std::move(group);
    }
    to_callers_.notify_all();
  }
}

JournalContents read_journal(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  const std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (view.size() < kFixedHeaderBytes || view.substr(0, kMagic.size()) != kMagic) {
    throw Error("journal (" + path + ") is not a tengen journal; move it out of the run");
  }
  ByteReader header(view.substr(kMagic.size()), "journal header");
  const uint32_t schema = header.u32();
  if (schema != kJournalSchema) {
    throw SchemaError("journal (" + path + ") has schema " + std::to_string(schema) +
                      ", this build reads " + std::to_string(kJournalSchema) +
                      "; use the release that wrote it");
  }
  const uint32_t meta_bytes = header.u32();
  const uint32_t header_crc = header.u32();
  if (meta_bytes > view.size() - kFixedHeaderBytes ||
      crc32c(view.substr(kFixedHeaderBytes, meta_bytes), crc32c(view.substr(0, 16))) !=
          header_crc) {
    throw Error("journal (" + path + ") has a damaged header; restore it from a copy");
  }
  JournalContents contents;
  contents.meta = view.substr(kFixedHeaderBytes, meta_bytes);
  FrameFinder finder(path, view);
  size_t at = kFixedHeaderBytes + meta_bytes;
  while (at < view.size()) {
    if (const auto payload = finder.payload_at(at)) {
      contents.frames.emplace_back(*payload);
      at += kFrameHeaderBytes + payload->size();
    } else {
      const size_t next = finder.next_frame(at + 1);
      contents.gaps.push_back({at, next - at, next == view.size()});
      at = next;
    }
  }
  return contents;
}

}  // namespace tengen
