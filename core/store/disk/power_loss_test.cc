// Power may fail at any moment: everything that was confirmed had been synced to the disk.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "store/disk/disk_testing.h"
#include "store/disk/durable_log.h"
#include "store/service/numbers_testing.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

namespace {

// Every item for which flush() returned is present exactly once, with its steps.
void check_items() {
  Folder folder("power_loss");
  LostDisk disk(folder.path);
  Rng rng(1, 0, 0, 0, Purpose::kTest);
  for (int life = 0; life < 3; ++life) {
    const auto store = make_numbers(folder, Durability::kSync);
    NumberWriter writer(store.get());
    for (int round = 0; round < 12; ++round) {
      writer.insert(1 + static_cast<int>(rng.below(40)));
      TENGEN_CHECK(writer.writer.flush(in_time()));
      const int64_t promised = writer.next;
      if (rng.below(2) == 0) writer.insert(static_cast<int>(rng.below(40)));
      Folder left("power_loss_left");
      disk.write(left.path, round % 2 == 0 ? nullptr : &rng);
      const auto heir = make_numbers(left, Durability::kSync);
      TENGEN_CHECK(NumberWriter(heir.get()).next >= promised);
      const std::vector<int64_t> numbers = use_numbers(*heir);
      TENGEN_CHECK(static_cast<int64_t>(numbers.size()) >= promised);
      TENGEN_CHECK(numbers == range(0, static_cast<int64_t>(numbers.size())));
    }
  }
}

// The same for records in logs that are closed and compacted into states.
void check_logs() {
  Folder folder("power_loss");
  LostDisk disk(folder.path);
  Rng rng(2, 0, 0, 0, Purpose::kTest);
  Log log;
  log.add(event::TableAdded{0, 0});
  log.add(event::SessionBegun{0, 0});
  State state;
  state.apply(log.pending());
  uint32_t num = 0;
  size_t promised = 0;
  for (int life = 0; life < 3; ++life) {
    std::optional<DurableLog> kept(std::in_place, folder.path, state, 1 << 12);
    const std::vector<std::byte> much(300 << 10);
    for (int round = 0; round < 25; ++round) {
      log.clear();
      if (rng.below(2) == 0) {
        log.add(event::SessionDescribed{0, static_cast<uint32_t>(much.size())}, std::span(much));
      }
      ++num;
      log.add(event::SessionDescribed{0, num}, std::span(much).first(num));
      kept->append(log.pending());
      if (rng.below(4) == 0) {
        TENGEN_CHECK(kept->mark(kept->position(), {}, {}));
        promised = num;
      }
      if (promised == 0) continue;
      Folder left("power_loss_left");
      disk.write(left.path, round % 2 == 0 ? nullptr : &rng);
      const std::optional<State> last = DurableLog::load(left.path);
      TENGEN_CHECK(last && last->sessions.at(0).description.size() >= promised);
    }
    // Logs contained in a state may or may not be removed when the power fails.
    TENGEN_CHECK(kept->mark(kept->position(), {}, {}));
    while (folder.count("log-") > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (int i = 0; i < 20; ++i) {
      Folder left("power_loss_left");
      disk.write(left.path, &rng);
      const std::optional<State> last = DurableLog::load(left.path);
      TENGEN_CHECK(last && last->sessions.at(0).description.size() == num);
    }
    kept.reset();
    state = *DurableLog::load(folder.path);
    num = static_cast<uint32_t>(state.sessions.at(0).description.size());
  }
}

}  // namespace

int main() {
  check_items();
  check_logs();
  return 0;
}
