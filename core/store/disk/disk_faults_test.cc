// The guarantees of a durable log when disks fail or are slow, and when files are lost.

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/thread.h"
#include "store/disk/disk_testing.h"
#include "store/disk/durable_log.h"
#include "store/service/service_testing.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

namespace {

namespace fs = std::filesystem;

// A durable log of one table, whose capacity serves as a version number.
struct Versions {
  explicit Versions(const Folder& folder, uint64_t log_bytes = DurableLog::kLogBytes)
      : log(folder.path, of_one_table(), log_bytes) {}
  static State of_one_table() {
    Log log;
    log.add(event::TableAdded{0, 0});
    State state;
    state.apply(log.pending());
    return state;
  }
  // Appends `times` records that set the version.
  DurableLog::Append append(uint32_t version, int times = 1) {
    Log records;
    for (int i = 0; i < times; ++i) records.add(event::CapacitySet{0, version, version});
    return log.append(records.pending());
  }
  bool mark() { return log.mark(log.position(), now_us(), {}); }

  DurableLog log;
};

uint32_t version_of(const Folder& folder) {
  const std::optional<State> state = DurableLog::load(folder.path);
  return state ? static_cast<uint32_t>(state->tables.at(0).capacity->first) : 0;
}

// Returns a function that throws the first time it is called with a path that contains `part`.
std::function<void(const std::string&)> fail_once(const std::string& part) {
  return [part, has_failed = false](const std::string& path) mutable {
    if (path.find(part) == std::string::npos || std::exchange(has_failed, true)) return;
    throw DiskFullError("file (" + path + ") has no room; free some");
  };
}

// If the first write of the file `state-mark` fails, the next mark writes the file.
void check_first_mark_fails() {
  Folder folder("disk_faults");
  {
    const WatchedDisk disk(fail_once("state-mark"));
    Versions versions(folder);
    versions.append(1);
    TENGEN_CHECK(!versions.mark() && versions.log.resume());
    TENGEN_CHECK(!fs::exists(folder.path / "state-mark.part"));
    for (const uint32_t version : {2u, 3u}) {
      versions.append(version);
      TENGEN_CHECK(versions.mark());
    }
  }
  TENGEN_CHECK(fs::exists(folder.path / "state-mark") && version_of(folder) == 3);
  const LogPlace end = DurableLog::find_last(folder.path)->end;
  {
    std::fstream log(log_path(folder.path, end.number),
                     std::ios::in | std::ios::out | std::ios::binary);
    log.seekp(static_cast<int64_t>(end.offset) - 1).put('\x55');
  }
  TENGEN_CHECK(throws([&] { DurableLog::load(folder.path); }));
}

// A failed write of a state leaves no file on the disk.
void check_no_part_stays() {
  Folder folder("disk_faults");
  const WatchedDisk disk(fail_once("state-7"));
  const State state = Versions::of_one_table();
  TENGEN_CHECK(throws([&] { write_state(folder.path, 7, state, /*is_synced=*/true); }));
  TENGEN_CHECK(fs::is_empty(folder.path));
  write_state(folder.path, 7, state, /*is_synced=*/true);
  TENGEN_CHECK(state_numbers(folder.path) == std::vector<uint64_t>{7});
}

// A log that fails and cannot be read back ends permanently and accepts no more records. A log that
// cannot be read because no descriptors are left can be resumed.
void check_lost_files() {
  Folder folder("disk_faults");
  for (const bool is_lost : {false, true}) {
    folder.clear();
    std::atomic<bool> fails = false;
    const WatchedDisk disk([&, fail = fail_once("log-0")](const std::string& path) mutable {
      if (fails) fail(path);
    });
    Versions versions(folder);
    fails = true;
    versions.append(1);
    TENGEN_CHECK(!versions.mark());
    if (is_lost) {
      fs::remove(state_path(folder.path, 0));
    } else {
      // The sanitizer opens descriptors the first time it sees a type, so show it these types now.
      (void)message_of(std::make_exception_ptr(ShortageError("")));
      (void)state_numbers(folder.path / "none");
      const NoDescriptors none;
      TENGEN_CHECK(!versions.log.resume() && !versions.log.is_over());
    }
    TENGEN_CHECK(versions.log.resume() != is_lost && versions.log.is_over() == is_lost);
    const uint64_t position = versions.log.position();
    const DurableLog::Append appended = versions.append(2);
    TENGEN_CHECK((appended == DurableLog::Append::kDone) != is_lost);
    TENGEN_CHECK((versions.log.position() == position) == is_lost);
    if (!is_lost) TENGEN_CHECK(versions.mark() && version_of(folder) == 2);
  }
}

// Appending never waits for the disk, even while a log is being closed.
void check_appends_do_not_wait() {
  Folder folder("disk_faults");
  bool is_marking = false;
  int num_syncs = 0;  // by this thread; another thread writes the states
  std::optional<Versions> versions;
  const auto own = std::this_thread::get_id();
  const WatchedDisk disk(nullptr, [&](const std::string& path) {
    if (std::this_thread::get_id() != own) return;
    ++num_syncs;
    if (is_marking && path.find("state-") == std::string::npos) versions->append(2, 20'000);
  });
  versions.emplace(folder, 1 << 12);
  num_syncs = 0;
  for (int i = 0; i < 5; ++i) versions->append(1, 20'000);
  TENGEN_CHECK(num_syncs == 0 && folder.count("log-") == 1);
  is_marking = true;
  TENGEN_CHECK(versions->mark() && num_syncs > 0);
  is_marking = false;
  TENGEN_CHECK(folder.count("log-") == 2);
  TENGEN_CHECK(versions->mark());
  versions.reset();  // its threads check the disk and replace logs with a state
  TENGEN_CHECK(version_of(folder) == 2);
}

// The reader stops after two marks, which prove damage, if hostile bytes nest many marks.
void check_nested_marks() {
  Folder folder("disk_faults");
  constexpr size_t kMarks = 100;
  constexpr size_t kBegin = sizeof(LogHeader) + sizeof(FrameHead);  // after a torn frame
  LogHeader header{kStateVersion, 1, 0, 0};
  header.checksum = checksum_of(header);
  std::vector<std::byte> bytes(kBegin + kMarks * sizeof(FrameHead));
  std::memcpy(bytes.data(), &header, sizeof header);
  for (size_t i = kMarks; i-- > 0;) {
    const size_t begin = kBegin + i * sizeof(FrameHead);
    const std::span payload = std::span(bytes).subspan(begin + sizeof(FrameHead));
    FrameHead head{FrameKind::kMark, 0, payload.size()};
    head.checksum = checksum_of(header.writer, begin, head, payload);
    std::memcpy(bytes.data() + begin, &head, sizeof head);
  }
  const fs::path path = folder.path / "log-0";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<int64_t>(bytes.size()));
  LogReader log(path);
  TENGEN_CHECK(!log.next() && log.num_marks_behind() == 2);
}

}  // namespace

int main() {
  check_first_mark_fails();
  check_no_part_stays();
  check_lost_files();
  check_appends_do_not_wait();
  check_nested_marks();
  return 0;
}
