// Replicas that follow a store, and stores that resume from a replica's folder.

#include "store/net/replica.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "store/net/gateway.h"
#include "store/service/numbers_testing.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

namespace {

namespace fs = std::filesystem;

// Creates a store with so few rows on disk that rows are reused.
std::unique_ptr<Store> make_store(const Folder& folder, Durability durability) {
  return make_numbers(folder, durability, 200);
}

uint64_t num_damaged(Store& store) {
  return store.read([](const Engine& engine) { return engine.num_damaged(0); });
}

// Lets a replica follow a gateway's store, from construction to destruction.
class Following {
 public:
  Following(Gateway* gateway, Replica* replica) {
    int ends[2];
    TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    gateway->open_replica(ends[0], "r");
    close(ends[0]);
    descriptor_ = dup(ends[1]);
    thread_ = std::thread([this, replica, end = ends[1]] {
      try {
        replica->follow(end);
      } catch (const Error& error) {
        refusal = error.what();
      }
    });
  }
  ~Following() { cut(); }
  void cut() {
    if (!thread_.joinable()) return;
    shutdown(descriptor_, SHUT_RDWR);
    close(descriptor_);
    thread_.join();
  }
  std::string refusal;

 private:
  int descriptor_;
  std::thread thread_;
};

// Returns the last checkpoint of a live store, or none if a compaction interrupts the reading.
std::optional<DurableLog::Last> last_of_live(const Folder& folder) {
  try {
    return DurableLog::find_last(folder.path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Waits until the replica has the store's last checkpoint.
void catch_up(const Folder& folder, Replica& replica) {
  const auto is_there = [&] {
    const std::optional<DurableLog::Last> last = last_of_live(folder);
    return last && replica.begun_us() == last->mark.begun_us;
  };
  const Deadline end = in_time();
  while (!is_there()) {
    TENGEN_CHECK(std::chrono::steady_clock::now() < end);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Resumes a store from a folder, and checks that it has every number from `first_left` on, at least
// up to `end`, and no number twice. No number from `first_left` on was used before.
void check_heir(const Folder& folder, int64_t first_left, int64_t end) {
  const auto store = make_store(folder, Durability::kCheckpoint);
  const int64_t next = NumberWriter(store.get()).next;
  TENGEN_CHECK(next >= end);
  const std::vector<int64_t> numbers = use_numbers(*store);
  TENGEN_CHECK(std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
               numbers.end());
  const auto left = std::lower_bound(numbers.begin(), numbers.end(), first_left);
  TENGEN_CHECK(std::vector<int64_t>(left, numbers.end()) == range(first_left, next));
}

// Rows are reused, the stream is cut at random points, and every copy of the folder is consistent.
void check_shipping() {
  Folder folder("primary"), copy("replica");
  const auto store = make_store(folder, Durability::kAsync);
  Gateway gateway(store.get());
  NumberWriter writer(store.get());
  Rng rng(1, 0, 0, 0, Purpose::kTest);
  int64_t num_used = 0;
  for (int round = 0; round < 30; ++round) {
    {
      Replica replica(copy.path);
      Following following(&gateway, &replica);
      for (uint32_t i = 0; i <= rng.below(8); ++i) {
        writer.insert(static_cast<int>(rng.below(100)));
        const uint64_t size = static_cast<uint64_t>(writer.next - num_used);
        num_used += static_cast<int64_t>(use_numbers(*store, size > 200 ? size - 200 : 0).size());
      }
      if (round % 5 == 4) {
        writer.checkpoint();
        catch_up(folder, replica);
      }
      following.cut();
      TENGEN_CHECK(following.refusal.empty());
    }
    if (round % 5 != 4) continue;
    // The copy has all items of the checkpoint, so the store did not remove any of them too early.
    Folder heir("heir");
    fs::copy(copy.path, heir.path, fs::copy_options::recursive);
    check_heir(heir, num_used, writer.next);
  }
}

// Bytes and files that a lost host left after its last checkpoint are overwritten.
void check_torn_tail() {
  Folder folder("primary"), copy("replica");
  const auto store = make_store(folder, Durability::kCheckpoint);
  Gateway gateway(store.get());
  NumberWriter writer(store.get());
  Rng rng(2, 0, 0, 0, Purpose::kTest);
  for (int round = 0; round < 20; ++round) {
    writer.insert(20);
    writer.checkpoint();
    {
      Replica replica(copy.path);
      Following following(&gateway, &replica);
      catch_up(folder, replica);
    }
    const std::optional<DurableLog::Last> last = DurableLog::find_last(copy.path);
    TENGEN_CHECK(last.has_value());
    const std::string log = log_path(copy.path, last->end.number);
    TENGEN_CHECK(fs::file_size(log) == last->end.offset);
    std::ofstream(log, std::ios::binary | std::ios::app) << std::string(rng.below(300), 'x');
    std::ofstream(state_path(copy.path, last->end.number + 7) + ".part") << "x";
    std::ofstream(log_path(copy.path, last->end.number + 1)) << "x";
  }
  check_heir(copy, 0, writer.next);
}

// If logs are compacted before the replica reads them, the replica gets the new state.
void check_compaction() {
  Folder folder("primary"), copy("replica");
  const auto store = make_store(folder, Durability::kAsync);
  Gateway gateway(store.get());
  NumberWriter writer(store.get());
  writer.insert(100);
  writer.checkpoint();
  const auto session = store->change([](Engine& engine) { return engine.begin_session(); });
  const std::vector<std::byte> much(uint64_t{1} << 20);
  const auto compact = [&] {
    const uint64_t before = state_numbers(folder.path).front();
    while (state_numbers(folder.path).front() == before) {
      store->change([&](Engine& engine) { engine.describe_session(session, much); });
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  std::optional<Replica> replica(std::in_place, copy.path);
  {
    Following following(&gateway, &*replica);
    writer.checkpoint();
    catch_up(folder, *replica);
  }
  compact();  // while the replica is disconnected
  writer.insert(100);
  writer.checkpoint();
  Following following(&gateway, &*replica);
  catch_up(folder, *replica);
  TENGEN_CHECK(state_numbers(copy.path).front() > 0);
  compact();  // while the replica follows
  writer.insert(100);
  writer.checkpoint();
  catch_up(folder, *replica);
  following.cut();
  TENGEN_CHECK(following.refusal.empty());
  replica.reset();  // the heir uses its folder from here on
  check_heir(copy, 0, writer.next);
}

// The next primary, on the old folder or a copy of the replica, can use the same replica.
void check_next_primary() {
  Folder folder("primary"), copy("replica"), elsewhere("elsewhere");
  int64_t end = 0;
  for (int round = 0; round < 4; ++round) {
    const Folder& own = round % 2 == 0 ? folder : elsewhere;
    const auto store = make_store(own, Durability::kCheckpoint);
    Gateway gateway(store.get());
    NumberWriter writer(store.get());
    TENGEN_CHECK(writer.next >= end);
    writer.insert(30);
    writer.checkpoint();
    end = writer.next;
    Replica replica(copy.path);
    {
      Following following(&gateway, &replica);
      catch_up(own, replica);
      following.cut();
      TENGEN_CHECK(following.refusal.empty());
    }
    // The host is lost, and the next store starts from a copy of the replica's folder.
    const Folder& next = round % 2 == 0 ? elsewhere : folder;
    fs::remove_all(next.path);
    fs::copy(copy.path, next.path, fs::copy_options::recursive);
  }
  check_heir(copy, 0, end);
}

// If rows are newer than the replica's log, only items that the store had removed are damaged.
void check_rows_ahead() {
  Folder folder("primary"), copy("replica");
  const auto store = make_store(folder, Durability::kCheckpoint);
  Gateway gateway(store.get());
  NumberWriter writer(store.get());
  writer.insert(400);
  writer.checkpoint();
  {
    Replica replica(copy.path);
    Following following(&gateway, &replica);
    catch_up(folder, replica);
  }
  TENGEN_CHECK(use_numbers(*store, 300).size() == 300);
  for (int i = 0; i < 3; ++i) {
    writer.insert(100);
    writer.checkpoint();
  }
  // The rows had arrived, and the replica was killed before the log arrived.
  fs::copy(rows_path(folder.path, 0), rows_path(copy.path, 0),
           fs::copy_options::overwrite_existing);
  const auto heir = make_store(copy, Durability::kCheckpoint);
  const std::vector<int64_t> numbers = use_numbers(*heir);
  TENGEN_CHECK(num_damaged(*heir) > 0);
  TENGEN_CHECK(numbers.size() + num_damaged(*heir) == 400);
  TENGEN_CHECK(numbers.size() >= 100);
  const int64_t end = 400;
  const std::vector<int64_t> newest(numbers.end() - 100, numbers.end());
  TENGEN_CHECK(newest == range(end - 100, end));
}

// Returns the names and contents of the states and logs in a folder.
std::map<std::string, std::string> read_logs(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.rfind("rows", 0) == 0 || !entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[name] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

// Damage to confirmed data is an error rather than a torn end, and no file is modified.
void check_damage() {
  Folder folder("primary"), copy("replica");
  const auto store = make_store(folder, Durability::kCheckpoint);
  Gateway gateway(store.get());
  NumberWriter writer(store.get());
  writer.insert(100);
  writer.checkpoint();
  {
    Replica replica(copy.path);
    Following following(&gateway, &replica);
    catch_up(folder, replica);
  }
  const auto whole = read_logs(copy.path);
  TENGEN_CHECK(whole.count("log-0") == 1 && whole.count("state-0") == 1);
  Rng rng(3, 0, 0, 0, Purpose::kTest);
  for (const auto& [name, bytes] : whole) {
    for (int i = 0; i < 20; ++i) {
      std::string flipped = bytes;
      flipped[rng.below(static_cast<uint32_t>(bytes.size()))] ^= 1;
      std::ofstream(copy.path / name, std::ios::binary) << flipped;
      const auto damaged = read_logs(copy.path);
      TENGEN_CHECK(throws([&] { Replica replica(copy.path); }));
      TENGEN_CHECK(read_logs(copy.path) == damaged);
    }
    std::ofstream(copy.path / name, std::ios::binary) << bytes;
  }
  check_heir(copy, 0, 100);
}

// A primary that resumed from an older copy of its folder has other rows at the same positions. The
// replica accepts them, and keeps the previous checkpoint until it has one of this primary.
void check_older_primary() {
  Folder folder("primary"), old("old"), copy("replica");
  {
    const auto store = make_store(folder, Durability::kCheckpoint);
    NumberWriter(store.get()).insert(10);
    store->close();
  }
  fs::copy(folder.path, old.path, fs::copy_options::recursive);
  const auto follow = [&](const Folder& own, int count) {
    const auto store = make_store(own, Durability::kCheckpoint);
    Gateway gateway(store.get());
    NumberWriter writer(store.get());
    writer.insert(count);
    writer.checkpoint();
    Replica replica(copy.path);
    Following following(&gateway, &replica);
    catch_up(own, replica);
  };
  follow(folder, 20);
  const auto before = read_logs(copy.path);
  {
    // Another store sends its state, and nothing after it.
    Replica replica(copy.path);
    Log log;
    log.add(event::TableAdded{0, 0});
    int ends[2];
    TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const StateMessage message{.num_pools = 1, .record_bytes = log.pending().size()};
    const uint64_t row_bytes = 4096;
    iovec parts[] = {transport::part_of(&message, sizeof message),
                     transport::part_of(&row_bytes, sizeof row_bytes),
                     transport::part_of(log.pending().data(), log.pending().size())};
    TENGEN_CHECK(writev(ends[0], parts, 3) > 0);
    shutdown(ends[0], SHUT_WR);
    replica.follow(ends[1]);
    close(ends[0]);
  }
  const auto kept = read_logs(copy.path);
  for (const auto& [name, bytes] : before) TENGEN_CHECK(kept.at(name) == bytes);
  follow(old, 30);
  check_heir(copy, 0, 40);
}

// Bytes that no store sends are rejected with an error.
void check_nonsense() {
  Folder copy("replica");
  Replica replica(copy.path);
  for (const uint32_t kind :
       {77u, static_cast<uint32_t>(Reply::kMark), static_cast<uint32_t>(Reply::kRow)}) {
    int ends[2];
    TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    std::vector<uint32_t> words(1000, kind);
    TENGEN_CHECK(write(ends[0], words.data(), 4000) == 4000);
    TENGEN_CHECK(throws([&] { replica.follow(ends[1]); }));
    close(ends[0]);
  }
  TENGEN_CHECK(!replica.begun_us());
}

}  // namespace

int main() {
  check_shipping();
  check_torn_tail();
  check_compaction();
  check_next_primary();
  check_rows_ahead();
  check_damage();
  check_older_primary();
  check_nonsense();
  return 0;
}
