// Kinds of steps that share one memory.

#include <optional>
#include <string>

#include "base/testing.h"
#include "store/engine/engine.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

constexpr uint64_t kStepBytes = 64;

// Steps of other columns have their part however many came first; what can never lie in it is
// refused.
void check_parts() {
  Memory memory("", 200 * kStepBytes);
  Engine engine(&memory, 0);
  for (int i = 0; i < 2; ++i) {
    engine.add_pool(Schema({{"x", "u1", {kStepBytes}, 0}}, 1));
    TableConfig config;
    config.name = std::to_string(i);
    engine.add_table(config, static_cast<uint32_t>(i));
  }
  const SessionId session = engine.begin_session();
  for (uint32_t table = 0; table < 2; ++table) {
    const uint32_t writer = engine.open_writer(session, std::to_string(table), table).writer;
    for (uint64_t i = 0; i < 300; ++i) {
      const std::optional<uint32_t> slot = engine.grant(writer);
      TENGEN_CHECK(slot.has_value());
      engine.append(writer, *slot);
      engine.insert(writer, {table, i, i, 1, 1.0});
      engine.release_before(writer, i + 1);
    }
  }
  for (uint32_t table = 0; table < 2; ++table) {
    TENGEN_CHECK(engine.table(table).size() >= 95 && engine.table(table).size() <= 100);
  }
  TableConfig too_long;
  too_long.name = "long";
  too_long.num_steps = 101;
  TENGEN_CHECK(throws([&] { engine.add_table(too_long, 0); }));
  Memory little("", 10 * kStepBytes);
  Engine many(&little, 0);
  const auto add = [&] { many.add_pool(Schema({{"x", "u1", {kStepBytes}, 0}}, 1)); };
  for (int i = 0; i < 10; ++i) add();
  TENGEN_CHECK(throws(add));
}

}  // namespace

int main() {
  check_parts();
  return 0;
}
