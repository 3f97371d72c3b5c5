// Binds a store's writers and samplers, for its own process and for others on its host. Calls that
// wait, even for the store's lock, or that copy release the GIL. A call waits at most for its
// timeout, so that the caller can handle signals between calls.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "python/columns.h"
#include "python/gil.h"
#include "python/replay_writer.h"
#include "python/store_values.h"
#include "store/clients/sampler.h"
#include "store/service/store.h"
#include "store/session/ring_channel.h"
#include "store/steps/gather.h"
#include "store/steps/slots.h"
#include "transport/shared_memory.h"

namespace nb = nanobind;

namespace tengen {
namespace {

using store::Sampler;
using store::Store;
using store::engine::Engine;
using store::engine::Schema;
// The name, dtype and shape of a column.
using ColumnTuple = std::tuple<std::string, std::string, std::vector<uint32_t>>;

// Binds what a client in another process has in place of a store.
void bind_sessions(nb::module_& m) {
  nb::class_<Schema>(m, "StoreSchema", "See store/state/schema.h.")
      .def(nb::new_([](const std::vector<ColumnTuple>& columns, uint32_t steps_per_chunk) {
             std::vector<store::engine::Column> made;
             for (const auto& [name, dtype, shape] : columns) made.push_back({name, dtype, shape});
             return Schema(std::move(made), steps_per_chunk);
           }),
           nb::arg("columns"), nb::arg("steps_per_chunk"));
  nb::class_<store::SlabMap>(m, "SlabMap", "See store/steps/gather.h.")
      .def(nb::new_([](const std::string& directory, uint32_t pool, uint32_t slots_per_slab,
                       uint64_t slot_bytes) {
             auto maps = std::make_shared<std::vector<transport::SharedMemory>>();
             return store::SlabMap(slots_per_slab, slot_bytes, [=](uint32_t index) {
               maps->push_back(transport::SharedMemory::open(
                   directory + "/" + store::engine::Slots::slab_name(pool, index),
                   slots_per_slab * slot_bytes));
               return maps->back().data();
             });
           }),
           nb::arg("directory"), nb::arg("pool"), nb::arg("slots_per_slab"), nb::arg("slot_bytes"),
           "Maps the slabs of a pool from the store's directory.")
      .def_static("none", &store::SlabMap::none);
  nb::class_<store::SessionLayout>(m, "SessionLayout", "See store/session/ring_memory.h.")
      .def(nb::init<uint32_t, uint32_t>(), nb::arg("request_bytes"), nb::arg("reply_bytes"))
      .def_ro("request_bytes", &store::SessionLayout::request_bytes)
      .def_ro("reply_bytes", &store::SessionLayout::reply_bytes);
  nb::class_<store::Channel>(m, "StoreChannel", "See store/session/channel.h.");
  m.def(
      "host_channel",
      [](int descriptor, const std::string& memory_path, const store::SessionLayout& layout,
         const nb::callable& reconnect, double patience_s) -> std::unique_ptr<store::Channel> {
        // A shared_ptr, so that copies of the function do not need the GIL.
        const auto call = [held = std::make_shared<nb::callable>(reconnect)] {
          const GilHeld acquire;
          const nb::object answer = (*held)();
          if (nb::isinstance<nb::str>(answer)) throw Error(nb::cast<std::string>(answer));
          return nb::cast<int>(answer);
        };
        const auto patience = std::chrono::milliseconds(static_cast<int64_t>(patience_s * 1e3));
        return std::make_unique<store::RingChannel>(
            store::SessionAddress{descriptor, memory_path, layout, call, patience});
      },
      nb::arg("descriptor"), nb::arg("memory_path"), nb::arg("layout"), nb::arg("reconnect"),
      nb::arg("patience_s"),
      "Returns a session with a store on this host. The client's thread calls reconnect while it\n"
      "waits without the GIL; that returns a descriptor, -1 if no store answers, or the reason\n"
      "why the session has ended.");
}

void bind_writer(nb::module_& m) {
  nb::class_<ReplayWriter>(m, "ReplayWriter", "See python/replay_writer.h.")
      .def("append", &ReplayWriter::append, nb::arg("columns"), nb::arg("timeout_s"))
      .def("append_rest", &ReplayWriter::append_rest, nb::arg("timeout_s"))
      .def("insert", &ReplayWriter::insert, nb::arg("table"), nb::arg("num_steps"),
           nb::arg("priority"), nb::arg("sequence").none(), nb::arg("timeout_s"))
      .def("insert_each", &ReplayWriter::insert_each, nb::arg("table"), nb::arg("num_steps"),
           nb::arg("priorities"), nb::arg("count").none(), nb::arg("stride"),
           nb::arg("sequence").none(), nb::arg("timeout_s"))
      .def(
          "flush",
          [](ReplayWriter& self, double timeout_s) {
            return self.writer().flush(after(timeout_s));
          },
          nb::arg("timeout_s"), WithoutGil())
      .def(
          "waits", [](ReplayWriter& self) { return self.writer().waits(); }, WithoutGil())
      .def_prop_ro("num_steps", &ReplayWriter::num_steps)
      .def_prop_ro("next_sequence", &ReplayWriter::next_sequence);
  m.def(
      "open_writer",
      [](Store& store, const std::string& name, uint32_t pool, uint32_t max_item_steps) {
        auto writer = [&] {
          const GilReleased release;
          return std::make_unique<store::Writer>(
              store.open_writer(name, pool),
              store.read([&](const Engine& engine) { return engine.pool(pool).schema(); }),
              store.slab_map(pool), max_item_steps);
        }();
        return std::make_unique<ReplayWriter>(std::move(writer));
      },
      nb::arg("store"), nb::arg("name"), nb::arg("pool"), nb::arg("max_item_steps"),
      nb::keep_alive<0, 1>());
  m.def(
      "connect_writer",
      [](std::unique_ptr<store::Channel> channel, const Schema& schema, const store::SlabMap& slabs,
         uint64_t next_sequence, uint32_t max_item_steps, uint32_t num_ahead) {
        return std::make_unique<ReplayWriter>(std::make_unique<store::Writer>(
            store::WriterSession{std::move(channel), next_sequence, num_ahead}, schema, slabs,
            max_item_steps));
      },
      nb::arg("channel"), nb::arg("schema"), nb::arg("slabs"), nb::arg("next_sequence"),
      nb::arg("max_item_steps"), nb::arg("num_ahead"));
}

// The lease, keys [B], probabilities [B], columns and table size of a batch.
using Batch = std::tuple<uint64_t, NumpyVector<int64_t>, NumpyVector<double>,
                         nb::typed<nb::dict, nb::str, nb::any>, uint64_t>;

std::optional<Batch> next(Sampler& sampler, double timeout_s) {
  auto batch = [&] {
    const GilReleased release;
    return sampler.next(after(timeout_s));
  }();
  if (!batch) return std::nullopt;
  std::vector<size_t> leading{sampler.num_samples()};
  if (sampler.num_steps() > 1) leading.push_back(sampler.num_steps());
  return Batch(
      batch->lease, to_numpy(std::move(batch->keys)), to_numpy(std::move(batch->probabilities)),
      to_arrays(sampler.schema(), sampler.offsets(), batch->data, leading), batch->table_size);
}

void bind_makers(nb::module_& m) {
  m.def(
      "open_sampler",
      [](Store& store, uint32_t table, uint32_t num_samples, uint32_t num_ahead) {
        const GilReleased release;
        const uint32_t pool = store.read([&](const Engine& e) { return e.pool_of(table); });
        const uint32_t num_steps =
            store.read([&](const Engine& e) { return e.table(table).config().num_steps; });
        return std::make_unique<Sampler>(
            store.open_sampler(table, num_samples, num_ahead),
            store.read([&](const Engine& e) { return e.pool(pool).schema(); }),
            store.slab_map(pool), num_samples, num_steps);
      },
      nb::arg("store"), nb::arg("table"), nb::arg("num_samples"), nb::arg("num_ahead"),
      nb::keep_alive<0, 1>());
  m.def(
      "connect_sampler",
      [](std::unique_ptr<store::Channel> channel, const Schema& schema, const store::SlabMap& slabs,
         uint32_t num_samples, uint32_t num_steps, uint32_t num_ahead) {
        return std::make_unique<Sampler>(store::SamplerSession{std::move(channel), num_ahead},
                                         schema, slabs, num_samples, num_steps);
      },
      nb::arg("channel"), nb::arg("schema"), nb::arg("slabs"), nb::arg("num_samples"),
      nb::arg("num_steps"), nb::arg("num_ahead"));
}

void bind_sampler(nb::module_& m) {
  nb::class_<Sampler>(m, "ReplaySampler", "See store/clients/sampler.h.")
      .def("next", &next, nb::arg("timeout_s"))
      .def(
          "ack",
          [](Sampler& self, uint64_t lease, const std::optional<Doubles>& priorities) {
            std::span<const double> given;
            if (priorities) {
              given = span_of(*priorities);
              if (given.size() != self.num_samples()) {
                throw Error("priorities (" + std::to_string(given.size()) + ") must be " +
                            std::to_string(self.num_samples()) + ", one for each sample");
              }
              check_priorities(given);
            }
            const GilReleased release;
            self.ack(lease, given);
          },
          nb::arg("lease"), nb::arg("priorities").none())
      .def(
          "give_back", [](Sampler& self, uint64_t lease) { self.give_back(lease); },
          nb::arg("lease"), WithoutGil())
      .def("waits", [](Sampler& self) { return self.waits(); }, WithoutGil());
  bind_makers(m);
}

}  // namespace

void bind_store_clients(nb::module_& m) {
  bind_sessions(m);
  bind_writer(m);
  bind_sampler(m);
}

}  // namespace tengen
