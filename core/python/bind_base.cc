// Errors, owned descriptors, random streams for tests and for Python code, and Lifeline.

#include <nanobind/stl/array.h>

#include <cerrno>
#include <string>

#include "base/error.h"
#include "base/owned.h"
#include "base/rng.h"
#include "python/bindings.h"
#include "python/gil.h"
#include "transport/lifeline.h"

namespace nb = nanobind;

namespace tengen {

void bind_base(nb::module_& m) {
  nb::exception<Error>(m, "CoreError", PyExc_ValueError);
  nb::exception<DiskFullError>(m, "DiskFullError", m.attr("CoreError").ptr());

  // os.fork() waits for these calls while it holds the GIL, so they must release the GIL.
  const WithoutGil unlocked;
  m.def("own_descriptor", &own_descriptor, nb::arg("descriptor"), unlocked, "See base/owned.h.");
  m.def("disown_descriptor", &disown_descriptor, nb::arg("descriptor"));
  m.def("close_owned", &close_owned, nb::arg("descriptor"), unlocked);
  const auto or_errno = [](int descriptor) { return descriptor >= 0 ? descriptor : -errno; };
  m.def(
      "accept_owned", [=](int listener) { return or_errno(accept_owned(listener)); },
      nb::arg("listener"), unlocked, "Returns the connection, or -errno.");
  m.def(
      "dup_owned", [=](int descriptor) { return or_errno(dup_owned(descriptor)); },
      nb::arg("descriptor"), unlocked, "Returns the copy, or -errno.");
  m.def(
      "open_owned",
      // Takes bytes, because a path may not be UTF-8.
      [=](const nb::bytes& bytes, int flags, int mode) {
        const std::string path(bytes.c_str(), bytes.size());
        const GilReleased here;
        return or_errno(open_owned(path.c_str(), flags, mode));
      },
      nb::arg("path"), nb::arg("flags"), nb::arg("mode"), "Returns the descriptor, or -errno.");

  nb::class_<Rng>(m, "Rng", "A counter-based random stream (Philox4x32-10).")
      .def(
          "__init__",
          [](Rng* self, uint64_t seed, uint64_t generation, uint64_t game, uint32_t ply,
             uint32_t purpose) {
            new (self) Rng(seed, generation, game, ply, static_cast<Purpose>(purpose));
          },
          nb::arg("seed"), nb::arg("generation") = 0, nb::arg("game") = 0, nb::arg("ply") = 0,
          nb::arg("purpose") = static_cast<uint32_t>(Purpose::kTest))
      .def("next64", &Rng::next64)
      .def("uniform", &Rng::uniform)
      .def("below", &Rng::below, nb::arg("bound"))
      .def("normal", &Rng::normal)
      .def("gumbel", &Rng::gumbel)
      .def("gamma", &Rng::gamma, nb::arg("alpha"));

  using transport::Lifeline;
  nb::class_<Lifeline>(
      m, "Lifeline",
      "Ends this process when the other end of a pipe or socket is closed.\n\n"
      "The process has ``grace_s`` seconds to exit on its own, not counting waits for a CPU, and\n"
      "is then killed. It is not killed between ``hold`` and ``release``.")
      .def(nb::init<int, double>(), nb::arg("descriptor"), nb::arg("grace_s"))
      .def("hold", &Lifeline::hold)
      .def("release", &Lifeline::release);
  m.def("philox4x32", &philox4x32, nb::arg("counter"), nb::arg("key"));
}

}  // namespace tengen
