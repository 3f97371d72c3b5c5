#include "store/disk/state_files.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/crc32c.h"
#include "base/disk_file.h"
#include "base/error.h"
#include "base/thread.h"

namespace tengen::store {
namespace {

namespace fs = std::filesystem;
using engine::State;

constexpr size_t kStateWriteBytes = size_t{256} << 10;

// The header of a state file. The records follow.
struct StateHeader {
  uint64_t version;
  uint64_t num_bytes;  // bytes of the records
  uint64_t checksum;   // CRC-32C of the records
};

// Returns the number in the file name `<kind>-<number>`, or none if `path` has a different form.
std::optional<uint64_t> number_of(const fs::path& path, const std::string& kind) {
  const std::string name = path.filename().string();
  if (name.rfind(kind + "-", 0) != 0) return std::nullopt;
  const char* begin = name.data() + kind.size() + 1;
  const char* end = name.data() + name.size();
  uint64_t number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// Calls `f` with each state, log or partial file of a folder, and its number. A missing folder
// counts as empty. Throws Error if the folder cannot be read.
template <class F>
void for_each_file(const std::string& directory, F&& f) {
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const fs::path path = at->path();
    const fs::path whole = path.extension() == ".part" ? fs::path(path).replace_extension() : path;
    for (const char* kind : {"state", "log"}) {
      if (const auto number = number_of(whole, kind)) f(path, std::string(kind), *number);
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    refuse_file(directory, "cannot be read", error.value());
  }
}

std::string path_of(const std::string& directory, const char* kind, uint64_t number) {
  return directory + "/" + kind + "-" + std::to_string(number);
}

}  // namespace

void check_version(uint64_t version, const std::string& path) {
  check(version == kStateVersion, "version", version,
        ("must be " + std::to_string(kStateVersion) + " in " + path +
         "; use the tengen that made the store, or remove its folder")
            .c_str());
}

std::string state_path(const std::string& directory, uint64_t number) {
  return path_of(directory, "state", number);
}

std::string log_path(const std::string& directory, uint64_t number) {
  return path_of(directory, "log", number);
}

std::vector<uint64_t> state_numbers(const std::string& directory) {
  std::vector<uint64_t> numbers;
  for_each_file(directory, [&](const fs::path& path, const std::string& kind, uint64_t number) {
    if (kind == "state" && path.extension() != ".part") numbers.push_back(number);
  });
  std::sort(numbers.rbegin(), numbers.rend());
  return numbers;
}

uint64_t next_number(const std::string& directory) {
  uint64_t next = 0;
  for_each_file(directory, [&](const fs::path&, const std::string&, uint64_t number) {
    next = std::max(next, number + 1);
  });
  return next;
}

void remove_files(const std::string& directory, uint64_t begin, uint64_t end) {
  for_each_file(directory, [&](const fs::path& path, const std::string&, uint64_t number) {
    if (number >= begin && number < end) remove_file(path);
  });
}

std::vector<std::byte> read_state_records(const std::string& directory, uint64_t number) {
  const std::string path = state_path(directory, number);
  std::vector<std::byte> file = read_file(path);
  StateHeader header{};
  check(file.size() >= sizeof header, "state", path, kMustBeWhole);
  std::memcpy(&header, file.data(), sizeof header);
  check_version(header.version, path);
  const std::byte* records = file.data() + sizeof header;
  check(header.num_bytes == file.size() - sizeof header &&
            header.checksum == crc32c({reinterpret_cast<const char*>(records), header.num_bytes}),
        "state", path, kMustBeWhole);
  file.erase(file.begin(), file.begin() + sizeof header);
  return file;
}

State read_state(const std::string& directory, uint64_t number) {
  State state;
  state.apply(read_state_records(directory, number));
  return state;
}

uint64_t write_state(const std::string& directory, uint64_t number, const State& state,
                     bool is_synced) {
  StateHeader header{kStateVersion, 0, 0};
  uint64_t end = sizeof header;
  (void)make_whole_file(state_path(directory, number), is_synced, [&](const DiskFile& file) {
    uint32_t checksum = 0;
    std::vector<std::byte> buffer;  // records that are not yet written
    const auto flush = [&] {
      file.write(end, buffer);
      end += buffer.size();
      buffer.clear();
    };
    state.write([&](std::span<const std::byte> records) {
      buffer.insert(buffer.end(), records.begin(), records.end());
      checksum = crc32c({reinterpret_cast<const char*>(records.data()), records.size()}, checksum);
      if (buffer.size() >= kStateWriteBytes) flush();
    });
    flush();
    header.num_bytes = end - sizeof header;
    header.checksum = checksum;
    file.write(0, std::as_bytes(std::span(&header, 1)));
  });
  return end;
}

Compactor::Compactor(std::string directory, uint64_t first, uint64_t state_bytes,
                     uint64_t min_bytes, bool is_synced, ApplyLog apply, Fail fail)
    : directory_(std::move(directory)),
      min_bytes_(min_bytes),
      is_synced_(is_synced),
      apply_(std::move(apply)),
      fail_(std::move(fail)),
      first_(first),
      state_bytes_(state_bytes),
      thread_(start_thread("a store's log", [this] { run(); })) {}

Compactor::~Compactor() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopping_ = true;
  }
  condition_.notify_all();
  thread_.join();
}

void Compactor::add(uint64_t end, uint64_t num_bytes) {
  {
    const std::scoped_lock lock(mutex_);
    end_ = end;
    num_bytes_ += num_bytes;
  }
  condition_.notify_all();
}

void Compactor::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    condition_.wait(
        lock, [&] { return is_stopping_ || num_bytes_ >= std::max(min_bytes_, 2 * state_bytes_); });
    if (is_stopping_) return;
    const uint64_t end = end_;
    num_bytes_ = 0;
    lock.unlock();
    const std::string error = error_of([&] {
      State state = read_state(directory_, first_);
      for (uint64_t number = first_; number < end; ++number) apply_(number, &state);
      state_bytes_ = write_state(directory_, end, state, is_synced_);
      first_ = end;
      remove_files(directory_, 0, first_);
    });
    if (!error.empty()) {
      (void)error_of([&] { fail_(error); });
      return;
    }
    lock.lock();
  }
}

}  // namespace tengen::store
