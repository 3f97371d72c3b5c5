// Binds the store, and its server for this host.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/bindings.h"
#include "python/gil.h"
#include "python/of_process.h"
#include "python/store_values.h"
#include "store/service/server.h"
#include "store/service/store.h"
#include "store/tables/selection_benchmark.h"

namespace nb = nanobind;

namespace tengen {
namespace {

using store::engine::Engine;

// A thread that holds the store's lock may need the GIL, so functions release the GIL before they
// wait for the lock.

nb::dict describe(store::Store& store, uint32_t number) {
  std::vector<std::pair<const char*, uint64_t>> counts;
  double max_priority = 0.0;
  std::string insert_waits;
  store::engine::RateLimits limits;
  {
    const GilReleased release;
    store.read([&](const Engine& engine) {
      const store::engine::Table& table = engine.table(number);
      const store::engine::Pool& pool = engine.pool(engine.pool_of(number));
      counts = {{"num_items", table.size()},
                {"num_steps", table.num_steps()},
                {"num_eligible", table.num_eligible()},
                {"num_inserts", table.limiter().num_inserts()},
                {"num_samples", table.limiter().num_samples()},
                {"num_bytes", table.num_steps() * pool.schema().step_bytes()},
                {"num_damaged", engine.num_damaged(number)},
                {"num_chunk_hits", engine.chunk_reads(number).num_hits},
                {"num_chunk_misses", engine.chunk_reads(number).num_misses},
                {"max_items", table.config().max_items},
                {"max_steps", table.config().max_steps}};
      max_priority = table.max_priority();
      insert_waits = engine.insert_waits(number);
      limits = table.config().limits;
      return 0;
    });
  }
  nb::dict out;
  for (const auto& [name, count] : counts) out[name] = count;
  out["max_priority"] = max_priority;
  out["insert_waits"] = insert_waits;
  out["limits"] = nb::cast(limits);
  return out;
}

void bind_config(nb::module_& m) {
  using store::engine::RateLimits;
  using store::engine::SelectorConfig;
  using store::engine::TableConfig;
  nb::class_<SelectorConfig>(m, "SelectorConfig", "Fields as in store/tables/selector.h.")
      .def(nb::init<>())
      .def_rw("kind", &SelectorConfig::kind)
      .def_rw("exponent", &SelectorConfig::exponent);
  m.def(
      "benchmark_selection",
      [](const std::string& kind, uint32_t num_items, uint32_t batch_size, uint32_t num_batches) {
        const GilReleased release;
        return store::engine::benchmark_selection(store::engine::selector_of(kind), num_items,
                                                  batch_size, num_batches);
      },
      nb::arg("kind"), nb::arg("num_items"), nb::arg("batch_size"), nb::arg("num_batches"));
  nb::class_<RateLimits>(m, "RateLimits", "Fields as in store/state/rate_limiter.h.")
      .def(nb::init<>())
      .def_rw("samples_per_insert", &RateLimits::samples_per_insert)
      .def_rw("min_size", &RateLimits::min_size)
      .def_rw("min_cursor", &RateLimits::min_cursor)
      .def_rw("max_cursor", &RateLimits::max_cursor);
  nb::class_<TableConfig>(m, "TableConfig", "Fields as in store/tables/table.h.")
      .def(nb::init<>())
      .def_rw("name", &TableConfig::name)
      .def_rw("sampler", &TableConfig::sampler)
      .def_rw("remover", &TableConfig::remover)
      .def_rw("limits", &TableConfig::limits)
      .def_rw("max_items", &TableConfig::max_items)
      .def_rw("max_steps", &TableConfig::max_steps)
      .def_rw("max_times_sampled", &TableConfig::max_times_sampled)
      .def_rw("num_steps", &TableConfig::num_steps)
      .def_rw("max_loans", &TableConfig::max_loans);
}

}  // namespace

void bind_store(nb::module_& m) {
  nb::exception<store::GoneError>(m, "GoneError", m.attr("CoreError").ptr());
  nb::exception<store::RefusedError>(m, "RefusedError", m.attr("CoreError").ptr());
  bind_config(m);
  bind_store_clients(m);
  bind_store_net(m);
  using store::Server;
  using store::Store;
  nb::class_<Store>(m, "ReplayStore", "See store/service/store.h.")
      .def(nb::new_([](const std::string& directory, uint64_t memory_bytes, uint64_t seed,
                       const std::string& disk_directory, uint64_t disk_bytes,
                       const std::string& durability, double interval_s) {
             const auto interval = std::chrono::duration_cast<std::chrono::microseconds>(
                 std::chrono::duration<double>(interval_s));
             return make_of_process<Store>(
                 directory, memory_bytes, seed,
                 store::DiskConfig{disk_directory, disk_bytes, store::durability_of(durability),
                                   interval});
           }),
           nb::arg("directory"), nb::arg("memory_bytes"), nb::arg("seed"),
           nb::arg("disk_directory"), nb::arg("disk_bytes"), nb::arg("durability"),
           nb::arg("interval_s"))
      .def(
          "add_pool",
          [](Store& self, const store::engine::Schema& schema) {
            return self.change([&](Engine& engine) { return engine.add_pool(schema); });
          },
          nb::arg("schema"))
      .def(
          "add_table",
          [](Store& self, const store::engine::TableConfig& config, uint32_t pool) {
            return self.change([&](Engine& engine) { return engine.add_table(config, pool); });
          },
          nb::arg("config"), nb::arg("pool"))
      .def(
          "pool_layout",
          [](Store& self, uint32_t pool) {
            return self.read([&](const Engine& engine) {
              const store::engine::Pool& of = engine.pool(pool);
              return std::make_pair(of.slots().slots_per_slab(), of.slots().slot_bytes());
            });
          },
          nb::arg("pool"), WithoutGil(),
          "Returns the number of slots per slab, and of bytes per slot.")
      .def("describe", &describe, nb::arg("table"))
      .def(
          "set_limits",
          [](Store& self, uint32_t table, const store::engine::RateLimits& limits) {
            self.change_open([&](Engine& engine) { engine.table(table).set_limits(limits); });
          },
          nb::arg("table"), nb::arg("limits"), WithoutGil())
      .def(
          "set_capacity",
          [](Store& self, uint32_t table, std::optional<uint64_t> max_items,
             std::optional<uint64_t> max_steps) {
            self.change_open([&](Engine& engine) {
              store::engine::Table& changed = engine.table(table);
              changed.set_capacity(max_items.value_or(changed.config().max_items),
                                   max_steps.value_or(changed.config().max_steps));
            });
            self.change_in_steps([&](Engine& engine) { return engine.table(table).remove_some(); });
          },
          nb::arg("table"), nb::arg("max_items").none(), nb::arg("max_steps").none(), WithoutGil(),
          "Changes the limits that are not None.")
      .def("keep", &Store::keep, nb::arg("goes_on"), WithoutGil())
      .def(
          "begin_checkpoint", [](Store& self) { return self.checkpointer()->ask(); }, WithoutGil())
      .def(
          "wait_checkpoint",
          [](Store& self, uint64_t number, double timeout_s) -> std::optional<bool> {
            if (!self.checkpointer()->knows(number)) return std::nullopt;
            return self.checkpointer()->wait(number, after(timeout_s));
          },
          nb::arg("number"), nb::arg("timeout_s"), WithoutGil(),
          "Returns whether it is complete; None if the number is from another server.")
      .def(
          "checkpoint_age_s",
          [](Store& self) -> std::optional<double> {
            const auto made_at =
                self.checkpointer() == nullptr ? std::nullopt : self.checkpointer()->made_at();
            if (!made_at) return std::nullopt;
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - *made_at)
                .count();
          },
          WithoutGil())
      .def("trouble", &Store::trouble, WithoutGil())
      .def("room",
           [](Store& self) {
             const Store::Room room = [&] {
               const GilReleased release;
               return self.room();
             }();
             nb::dict out;
             out["memory_bytes"] = room.memory_bytes;
             out["memory_used_bytes"] = room.memory_used_bytes;
             out["disk_bytes"] = room.disk_bytes;
             out["disk_used_bytes"] = room.disk_used_bytes;
             return out;
           })
      .def("close", &Store::close, WithoutGil());

  nb::class_<store::Resumed>(m, "ReplayResumed", "See store/service/store.h.")
      .def_ro("num_lost", &store::Resumed::num_lost);
  nb::class_<Server::Opened>(m, "OpenedSession", "See store/service/server.h.")
      .def_ro("id", &Server::Opened::id)
      .def_ro("memory_path", &Server::Opened::memory_path)
      .def_ro("layout", &Server::Opened::layout)
      .def_ro("next_sequence", &Server::Opened::next_sequence);
  nb::class_<Server>(m, "ReplayServer", "See store/service/server.h.")
      .def(nb::new_([](Store* store, const store::Resumed& resumed) {
             return make_of_process<Server>(store, resumed.sessions);
           }),
           nb::arg("store"), nb::arg("resumed"), nb::keep_alive<0, 2>())
      .def("leave", &Server::leave)
      .def("resume", &Server::resume, nb::arg("descriptor"), nb::arg("id"), WithoutGil())
      .def(
          "open_writer",
          [](Server& self, int descriptor, const std::string& name, uint32_t pool,
             double timeout_s) {
            return self.open_writer(descriptor, name, pool, after(timeout_s));
          },
          nb::arg("descriptor"), nb::arg("name"), nb::arg("pool"), nb::arg("timeout_s"),
          WithoutGil())
      .def("open_sampler", &Server::open_sampler, nb::arg("descriptor"), nb::arg("table"),
           nb::arg("num_samples"), nb::arg("num_ahead"), WithoutGil())
      .def("describe", &Server::describe, WithoutGil());
}

}  // namespace tengen
