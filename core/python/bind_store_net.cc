// Binds the store between hosts: its gateway, replicas, and sessions from other hosts.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/gil.h"
#include "python/of_process.h"
#include "python/store_values.h"
#include "store/net/gateway.h"
#include "store/net/replica.h"
#include "store/session/stream_channel.h"
#include "store/steps/gather.h"

namespace nb = nanobind;

namespace tengen {

void bind_store_net(nb::module_& m) {
  using store::Gateway;
  nb::class_<Gateway>(m, "ReplayGateway", "See store/net/gateway.h.")
      .def(nb::new_([](store::Store* store) { return make_of_process<Gateway>(store); }),
           nb::arg("store"), nb::keep_alive<0, 2>())
      .def(
          "open_writer",
          [](Gateway& self, int descriptor, const std::string& name, uint32_t pool,
             double timeout_s) {
            return self.open_writer(descriptor, name, pool, after(timeout_s));
          },
          nb::arg("descriptor"), nb::arg("name"), nb::arg("pool"), nb::arg("timeout_s"),
          WithoutGil())
      .def("open_sampler", &Gateway::open_sampler, nb::arg("descriptor"), nb::arg("table"),
           nb::arg("num_samples"), nb::arg("num_ahead"), WithoutGil())
      .def("open_replica", &Gateway::open_replica, nb::arg("descriptor"), nb::arg("name"),
           WithoutGil())
      .def(
          "replicas",
          [](Gateway& self) {
            std::vector<std::pair<std::string, std::optional<double>>> replicas;
            for (const store::ReplicaStatus& one : self.replicas()) {
              replicas.emplace_back(one.name, one.behind_s);
            }
            return replicas;
          },
          WithoutGil(), "Returns the name of each replica, and its lag in seconds.")
      .def("describe", &Gateway::describe, WithoutGil());
  using store::Replica;
  nb::class_<Replica>(m, "ReplayReplica", "See store/net/replica.h.")
      .def(nb::init<std::string>(), nb::arg("directory"), WithoutGil())
      .def("begun_us", &Replica::begun_us)
      .def("age_s", &Replica::age_s)
      .def("follow", &Replica::follow, nb::arg("descriptor"), WithoutGil());
  m.def(
      "net_channel",
      [](int descriptor, const std::string& name, const store::engine::Schema& schema,
         uint32_t num_samples, uint32_t num_steps) -> std::unique_ptr<store::Channel> {
        const store::BatchLayout layout(schema, num_samples, num_steps);
        return std::make_unique<store::StreamChannel>(store::StreamAddress{descriptor, name},
                                                      num_samples, layout.num_bytes);
      },
      nb::arg("descriptor"), nb::arg("name"), nb::arg("schema"), nb::arg("num_samples"),
      nb::arg("num_steps"),
      "Returns a session with a store on another host. A writer has 0 samples.");
}

}  // namespace tengen
