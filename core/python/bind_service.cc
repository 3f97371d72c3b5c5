// The store as its clients see it. Calls that wait or copy release the GIL; a wait is at most as
// long as its timeout, so that the caller can look for signals between two.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>
#include <tuple>

#include "python/bindings.h"
#include "python/columns.h"
#include "service/sampler.h"
#include "service/server.h"
#include "service/session.h"
#include "service/writer.h"

namespace nb = nanobind;

namespace tengen {
namespace {

using replay::Engine;
using service::Deadline;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Keys = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ColumnTuple = std::tuple<std::string, std::string, std::vector<uint32_t>>;

Deadline after(double seconds) {
  if (!(seconds < 1e9)) return Deadline::max();
  return std::chrono::steady_clock::now() +
         std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

std::span<const double> span_of(const Doubles& values) { return {values.data(), values.size()}; }

replay::Schema schema_of(const std::vector<ColumnTuple>& columns, uint32_t steps_per_chunk) {
  std::vector<replay::Column> made;
  for (const auto& [name, dtype, shape] : columns) made.push_back({name, dtype, shape, 0});
  return {std::move(made), steps_per_chunk};
}

// A writer of Python: reads columns, fills chunks, names items.
class ReplayWriter {
 public:
  ReplayWriter(std::unique_ptr<service::WriterPort> port, const replay::Schema& schema,
               service::SlabMap slabs, uint32_t max_item_steps)
      : writer_(std::move(port), schema, std::move(slabs), max_item_steps),
        reader_(writer_.schema()) {}

  // Whether all steps were taken; if not, append_rest() goes on with those that were passed.
  bool append(const nb::handle& columns, double timeout_s) {
    reader_.read(columns);
    num_taken_ = 0;
    return append_rest(timeout_s);
  }

  bool append_rest(double timeout_s) {
    from_ = reader_.data();
    for (size_t c = 0; c < from_.size(); ++c) {
      from_[c] += num_taken_ * writer_.schema().columns()[c].num_bytes;
    }
    const nb::gil_scoped_release release;
    num_taken_ += writer_.append(from_, reader_.num_steps() - num_taken_, after(timeout_s));
    return num_taken_ == reader_.num_steps();
  }

  // The last `num_steps` steps as one item, whose number is the next where none is given.
  bool insert_last(uint32_t table, uint32_t num_steps, double priority,
                   std::optional<uint64_t> sequence, uint32_t version, double timeout_s) {
    if (num_steps > writer_.num_steps()) {
      throw Error("num_steps (" + std::to_string(num_steps) + ") must be at most the " +
                  std::to_string(writer_.num_steps()) + " steps appended; append more first");
    }
    const nb::gil_scoped_release release;
    return writer_.insert({table,
                           version,
                           sequence.value_or(writer_.next_sequence()),
                           writer_.num_steps() - num_steps,
                           1,
                           1,
                           num_steps,
                           {&priority, 1}},
                          after(timeout_s));
  }

  bool insert(uint32_t table, uint64_t sequence, uint64_t first, uint32_t count, uint32_t stride,
              uint32_t num_steps, const Doubles& priorities, uint32_t version, double timeout_s) {
    const nb::gil_scoped_release release;
    return writer_.insert(
        {table, version, sequence, first, count, stride, num_steps, span_of(priorities)},
        after(timeout_s));
  }

  service::Writer& writer() { return writer_; }

 private:
  service::Writer writer_;
  ColumnReader reader_;
  uint32_t num_taken_ = 0;  // of the steps that were read last
  std::vector<const std::byte*> from_;
};

struct ReplayBatch {
  uint64_t lease;
  uint64_t table_size;
  nb::object keys;
  nb::object probabilities;
  nb::dict columns;
};

template <class T>
nb::object to_numpy(std::vector<T> values) {
  auto* owned = new std::vector<T>(std::move(values));
  const nb::capsule owner(owned,
                          [](void* held) noexcept { delete static_cast<std::vector<T>*>(held); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

std::optional<ReplayBatch> next(service::Sampler& sampler, double timeout_s) {
  std::optional<service::Gathered> gathered;
  {
    const nb::gil_scoped_release release;
    gathered = sampler.next(after(timeout_s));
  }
  if (!gathered) return std::nullopt;
  std::vector<size_t> leading{sampler.num_samples()};
  if (sampler.num_steps() > 1) leading.push_back(sampler.num_steps());
  service::Delivery& delivery = gathered->delivery;
  return ReplayBatch{delivery.lease, delivery.table_size, to_numpy(std::move(delivery.keys)),
                     to_numpy(std::move(delivery.probabilities)),
                     to_arrays(sampler.schema(), sampler.offsets(), gathered->data, leading)};
}

// The slabs of one pool, mapped from the store's directory.
service::SlabMap map_slabs(const std::string& directory, uint32_t pool, uint32_t slots_per_slab,
                           uint64_t stride) {
  auto maps = std::make_shared<std::vector<ipc::SharedMemory>>();
  return {slots_per_slab, stride, [=](uint32_t index) {
            maps->push_back(
                ipc::SharedMemory::open(directory + "/" + replay::Pool::slab_name(pool, index)));
            return maps->back().data();
          }};
}

nb::dict describe(service::Store& store, uint32_t number) {
  return store.read([&](const Engine& engine) {
    const replay::Table& table = engine.table(number);
    const replay::Pool& pool = engine.pool(engine.pool_of(number));
    nb::dict out;
    out["num_items"] = table.size();
    out["num_steps"] = table.num_steps();
    out["num_eligible"] = table.num_eligible();
    out["num_inserts"] = table.limiter().num_inserts();
    out["num_samples"] = table.limiter().num_samples();
    out["newest_version"] = table.newest_version();
    out["num_bytes"] = table.num_steps() * pool.schema().step_bytes();
    out["insert_waits"] = engine.insert_waits(number);
    return out;
  });
}

void bind_config(nb::module_& m) {
  using replay::PowerLaw;
  using replay::RateLimits;
  using replay::SelectorConfig;
  using replay::TableConfig;
  nb::class_<PowerLaw>(m, "PowerLaw", "Fields as in replay/selector.h.")
      .def(nb::init<>())
      .def_rw("min_items", &PowerLaw::min_items)
      .def_rw("max_items", &PowerLaw::max_items)
      .def_rw("exponent", &PowerLaw::exponent)
      .def_rw("scale", &PowerLaw::scale)
      .def_rw("expand_per_item", &PowerLaw::expand_per_item);
  nb::class_<SelectorConfig>(m, "SelectorConfig", "Fields as in replay/selector.h.")
      .def(nb::init<>())
      .def_rw("kind", &SelectorConfig::kind)
      .def_rw("exponent", &SelectorConfig::exponent)
      .def_rw("window", &SelectorConfig::window)
      .def_rw("power_law", &SelectorConfig::power_law);
  nb::class_<RateLimits>(m, "RateLimits", "Fields as in replay/rate_limiter.h.")
      .def(nb::init<>())
      .def_rw("samples_per_insert", &RateLimits::samples_per_insert)
      .def_rw("min_size", &RateLimits::min_size)
      .def_rw("min_cursor", &RateLimits::min_cursor)
      .def_rw("max_cursor", &RateLimits::max_cursor);
  nb::class_<TableConfig>(m, "TableConfig", "Fields as in replay/table.h.")
      .def(nb::init<>())
      .def_rw("name", &TableConfig::name)
      .def_rw("sampler", &TableConfig::sampler)
      .def_rw("remover", &TableConfig::remover)
      .def_rw("limits", &TableConfig::limits)
      .def_rw("max_items", &TableConfig::max_items)
      .def_rw("max_steps", &TableConfig::max_steps)
      .def_rw("max_times_sampled", &TableConfig::max_times_sampled)
      .def_rw("max_staleness", &TableConfig::max_staleness)
      .def_rw("num_steps", &TableConfig::num_steps);
}

void bind_clients(nb::module_& m) {
  nb::class_<ReplayWriter>(m, "ReplayWriter", "See service/writer.h.")
      .def("append", &ReplayWriter::append, nb::arg("columns"), nb::arg("timeout_s"))
      .def("append_rest", &ReplayWriter::append_rest, nb::arg("timeout_s"))
      .def("insert_last", &ReplayWriter::insert_last, nb::arg("table"), nb::arg("num_steps"),
           nb::arg("priority"), nb::arg("sequence").none(), nb::arg("version"),
           nb::arg("timeout_s"))
      .def("insert", &ReplayWriter::insert, nb::arg("table"), nb::arg("sequence"), nb::arg("first"),
           nb::arg("count"), nb::arg("stride"), nb::arg("num_steps"), nb::arg("priorities"),
           nb::arg("version"), nb::arg("timeout_s"))
      .def(
          "flush",
          [](ReplayWriter& self, double timeout_s) {
            return self.writer().port().flush(after(timeout_s));
          },
          nb::arg("timeout_s"), nb::call_guard<nb::gil_scoped_release>())
      .def("waits", [](ReplayWriter& self) { return self.writer().port().waits(); })
      .def_prop_ro("num_steps", [](ReplayWriter& self) { return self.writer().num_steps(); })
      .def_prop_ro("next_sequence",
                   [](ReplayWriter& self) { return self.writer().next_sequence(); });
  nb::class_<ReplayBatch>(m, "ReplayBatch", "See service/sampler.h.")
      .def_ro("lease", &ReplayBatch::lease)
      .def_ro("table_size", &ReplayBatch::table_size)
      .def_prop_ro(
          "keys", [](const ReplayBatch& self) { return self.keys; },
          nb::sig("def keys(self) -> numpy.typing.NDArray[numpy.int64]"))
      .def_prop_ro(
          "probabilities", [](const ReplayBatch& self) { return self.probabilities; },
          nb::sig("def probabilities(self) -> numpy.typing.NDArray[numpy.float64]"))
      .def_prop_ro(
          "columns", [](const ReplayBatch& self) { return self.columns; },
          nb::sig("def columns(self) -> dict[str, typing.Any]"));
  nb::class_<service::Sampler>(m, "ReplaySampler", "See service/sampler.h.")
      .def("next", &next, nb::arg("timeout_s"))
      .def(
          "ack",
          [](service::Sampler& self, uint64_t lease, const std::optional<Doubles>& priorities) {
            const nb::gil_scoped_release release;
            self.port().ack(lease, priorities ? span_of(*priorities) : std::span<const double>());
          },
          nb::arg("lease"), nb::arg("priorities").none())
      .def(
          "give_back", [](service::Sampler& self, uint64_t lease) { self.port().give_back(lease); },
          nb::arg("lease"), nb::call_guard<nb::gil_scoped_release>())
      .def("waits", [](service::Sampler& self) { return self.port().waits(); });
}

}  // namespace

void bind_service(nb::module_& m) {
  bind_config(m);
  bind_clients(m);
  using service::Server;
  using service::Store;
  nb::class_<Store>(m, "ReplayStore", "See service/store.h.")
      .def(nb::init<const std::string&, uint64_t, uint64_t>(), nb::arg("directory"),
           nb::arg("memory_bytes"), nb::arg("seed"))
      .def(
          "add_pool",
          [](Store& self, const std::vector<ColumnTuple>& columns, uint32_t steps_per_chunk) {
            return self.change([&](Engine& engine) {
              return engine.add_pool(schema_of(columns, steps_per_chunk));
            });
          },
          nb::arg("columns"), nb::arg("steps_per_chunk"))
      .def(
          "add_table",
          [](Store& self, const replay::TableConfig& config, uint32_t pool) {
            return self.change([&](Engine& engine) { return engine.add_table(config, pool); });
          },
          nb::arg("config"), nb::arg("pool"))
      .def(
          "pool_layout",
          [](Store& self, uint32_t pool) {
            return self.read([&](const Engine& engine) {
              const replay::Pool& of = engine.pool(pool);
              return std::make_pair(of.slots_per_slab(), of.schema().chunk_bytes());
            });
          },
          nb::arg("pool"), "Slots a slab, and bytes a slot.")
      .def("describe", &describe, nb::arg("table"))
      .def(
          "set_limits",
          [](Store& self, uint32_t table, const replay::RateLimits& limits) {
            self.change([&](Engine& engine) { engine.table(table).set_limits(limits); });
          },
          nb::arg("table"), nb::arg("limits"))
      .def(
          "set_capacity",
          [](Store& self, uint32_t table, uint64_t max_items, uint64_t max_steps) {
            self.change(
                [&](Engine& engine) { engine.table(table).set_capacity(max_items, max_steps); });
          },
          nb::arg("table"), nb::arg("max_items"), nb::arg("max_steps"))
      .def(
          "set_version",
          [](Store& self, uint32_t table, uint32_t version) {
            self.change([&](Engine& engine) { engine.table(table).set_version(version); });
          },
          nb::arg("table"), nb::arg("version"))
      .def(
          "set_priorities",
          [](Store& self, uint32_t table, const Keys& keys, const Doubles& priorities) {
            if (keys.size() != priorities.size()) {
              throw Error("priorities (" + std::to_string(priorities.size()) + ") must be " +
                          std::to_string(keys.size()) + ", one for each key");
            }
            const nb::gil_scoped_release release;
            self.change([&](Engine& engine) {
              engine.table(table).set_priorities({keys.data(), keys.size()}, span_of(priorities));
            });
          },
          nb::arg("table"), nb::arg("keys"), nb::arg("priorities"))
      .def(
          "erase",
          [](Store& self, uint32_t table, const Keys& keys) {
            const nb::gil_scoped_release release;
            return self.change([&](Engine& engine) {
              uint64_t count = 0;
              for (size_t i = 0; i < keys.size(); ++i) {
                count += engine.table(table).erase(keys.data()[i]) ? 1u : 0u;
              }
              return count;
            });
          },
          nb::arg("table"), nb::arg("keys"))
      .def(
          "open_writer",
          [](Store& self, const std::string& name, uint32_t pool, uint32_t max_item_steps) {
            return std::make_unique<ReplayWriter>(
                self.open_writer(name, pool),
                self.read([&](const Engine& engine) { return engine.pool(pool).schema(); }),
                self.slab_map(pool), max_item_steps);
          },
          nb::arg("name"), nb::arg("pool"), nb::arg("max_item_steps"), nb::keep_alive<0, 1>())
      .def(
          "open_sampler",
          [](Store& self, uint32_t table, uint32_t num_samples) {
            const auto [pool, num_steps] = self.read([&](const Engine& engine) {
              return std::make_pair(engine.pool_of(table), engine.table(table).config().num_steps);
            });
            const uint32_t of = pool;
            return std::make_unique<service::Sampler>(
                self.open_sampler(table, num_samples),
                self.read([&](const Engine& engine) { return engine.pool(of).schema(); }),
                self.slab_map(of), num_samples, num_steps);
          },
          nb::arg("table"), nb::arg("num_samples"), nb::keep_alive<0, 1>())
      .def("close", &Store::close, nb::call_guard<nb::gil_scoped_release>());

  nb::class_<service::SessionLayout>(m, "SessionLayout", "See service/protocol.h.")
      .def(nb::init<uint32_t, uint32_t>(), nb::arg("request_bytes"), nb::arg("reply_bytes"))
      .def_ro("request_bytes", &service::SessionLayout::request_bytes)
      .def_ro("reply_bytes", &service::SessionLayout::reply_bytes);
  nb::class_<Server::Opened>(m, "OpenedSession", "See service/server.h.")
      .def_ro("memory_path", &Server::Opened::memory_path)
      .def_ro("layout", &Server::Opened::layout)
      .def_ro("next_sequence", &Server::Opened::next_sequence);
  nb::class_<Server>(m, "ReplayServer", "See service/server.h.")
      .def(nb::init<Store*>(), nb::arg("store"), nb::keep_alive<1, 2>())
      .def(
          "open_writer",
          [](Server& self, int descriptor, const std::string& name, uint32_t pool,
             double timeout_s) {
            return self.open_writer(descriptor, name, pool, after(timeout_s));
          },
          nb::arg("descriptor"), nb::arg("name"), nb::arg("pool"), nb::arg("timeout_s"),
          nb::call_guard<nb::gil_scoped_release>())
      .def("open_sampler", &Server::open_sampler, nb::arg("descriptor"), nb::arg("table"),
           nb::arg("num_samples"), nb::arg("num_ahead"), nb::call_guard<nb::gil_scoped_release>())
      .def("describe", &Server::describe, nb::call_guard<nb::gil_scoped_release>());
  m.def(
      "connect_writer",
      [](int descriptor, const std::string& memory_path, const service::SessionLayout& layout,
         uint64_t next_sequence, const std::vector<ColumnTuple>& columns, uint32_t steps_per_chunk,
         const std::string& directory, uint32_t pool, uint32_t slots_per_slab,
         uint32_t max_item_steps, uint32_t num_ahead) {
        const replay::Schema schema = schema_of(columns, steps_per_chunk);
        return std::make_unique<ReplayWriter>(
            service::remote_writer({descriptor, memory_path, layout}, next_sequence, num_ahead),
            schema, map_slabs(directory, pool, slots_per_slab, schema.chunk_bytes()),
            max_item_steps);
      },
      nb::arg("descriptor"), nb::arg("memory_path"), nb::arg("layout"), nb::arg("next_sequence"),
      nb::arg("columns"), nb::arg("steps_per_chunk"), nb::arg("directory"), nb::arg("pool"),
      nb::arg("slots_per_slab"), nb::arg("max_item_steps"), nb::arg("num_ahead"));
  m.def(
      "connect_sampler",
      [](int descriptor, const std::string& memory_path, const service::SessionLayout& layout,
         const std::vector<ColumnTuple>& columns, uint32_t steps_per_chunk,
         const std::string& directory, uint32_t pool, uint32_t slots_per_slab, uint32_t num_samples,
         uint32_t num_steps, uint32_t num_ahead) {
        const replay::Schema schema = schema_of(columns, steps_per_chunk);
        return std::make_unique<service::Sampler>(
            service::remote_sampler({descriptor, memory_path, layout}, num_ahead), schema,
            map_slabs(directory, pool, slots_per_slab, schema.chunk_bytes()), num_samples,
            num_steps);
      },
      nb::arg("descriptor"), nb::arg("memory_path"), nb::arg("layout"), nb::arg("columns"),
      nb::arg("steps_per_chunk"), nb::arg("directory"), nb::arg("pool"), nb::arg("slots_per_slab"),
      nb::arg("num_samples"), nb::arg("num_steps"), nb::arg("num_ahead"));
}

}  // namespace tengen
