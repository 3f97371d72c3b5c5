// A journal used by several threads, for sanitizers. tests/unit/experience checks its bytes.

#include "records/journal.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include "base/testing.h"
#include "records/fault.h"

using namespace tengen;

namespace {

// A new folder, which the destructor removes.
struct TemporaryFolder {
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tengen-XXXXXX").string();
    TENGEN_CHECK(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

GameRecord game(uint32_t index) {
  GameRecord record;
  record.game_index = index;
  record.outcome = Outcome::kDraw;
  record.plies.resize(1 + index % 5);
  return record;
}

// Many producers with a queue too small for them, and concurrent flushes. Counters only increase.
void test_threads() {
  const TemporaryFolder folder;
  const std::string path = (folder.path / "a.journal").string();
  constexpr uint32_t kNumThreads = 4;
  constexpr uint32_t kNumGames = 300;
  {
    Journal journal(path, "{}", 512);
    JournalSink sink(&journal);
    std::vector<std::thread> threads;
    for (uint32_t thread = 0; thread < kNumThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (uint32_t i = 0; i < kNumGames; ++i) {
          sink.put(game(thread * kNumGames + i));
          if (i % 100 == 50) journal.flush();
          const uint64_t num_durable = journal.num_durable();
          TENGEN_CHECK(num_durable <= journal.num_appended());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    journal.close();
    TENGEN_CHECK(journal.num_durable() == kNumThreads * kNumGames);
  }
  std::map<uint32_t, int> seen;
  for (const std::string& frame : read_journal(path).frames) {
    const GameRecord record = decode(frame);
    TENGEN_CHECK(record == game(record.game_index));
    ++seen[record.game_index];
  }
  TENGEN_CHECK(seen.size() == kNumThreads * kNumGames);
  for (const auto& [index, count] : seen) TENGEN_CHECK(count == 1);
}

// While the disk is full, every producer gets the error, and queued frames are kept.
void test_failures() {
  const TemporaryFolder folder;
  const std::string path = (folder.path / "a.journal").string();
  Journal journal(path, "{}", 512);
  set_fault("journal.group_written", FaultAction::kDiskFull, 2);
  std::vector<std::thread> threads;
  std::atomic<uint64_t> num_taken{0};
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      try {
        for (;;) {
          journal.append(std::string(100, 'x'));
          ++num_taken;
        }
      } catch (const Error&) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  set_fault("", FaultAction::kNone, 0);
  TENGEN_CHECK(journal.num_durable() < journal.num_appended());
  journal.close();
  TENGEN_CHECK(journal.num_durable() == num_taken);
  TENGEN_CHECK(read_journal(path).frames.size() == num_taken);
}

// A journal destroyed without close() writes its queued frames.
void test_destruction() {
  const TemporaryFolder folder;
  const std::string path = (folder.path / "a.journal").string();
  {
    Journal journal(path, "{}");
    for (int i = 0; i < 50; ++i) journal.append("frame");
  }
  TENGEN_CHECK(read_journal(path).frames.size() == 50);
}

}  // namespace

int main() {
  test_threads();
  test_failures();
  test_destruction();
  return 0;
}
