// Programs of recorded operations, which tengen.learners.recorded builds and runs.

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "programs/program.h"
#include "python/bindings.h"
#include "python/gil.h"

namespace nb = nanobind;

namespace tengen {

void bind_programs(nb::module_& m) {
  using programs::Operand;
  using programs::Program;
  // Slot, offset, type and strides; see Operand.
  using Given = std::tuple<int, int64_t, int, std::vector<int64_t>>;
  nb::class_<Program>(m, "Program", "A list of array operations; see programs/program.h.")
      .def(nb::init<>())
      .def(
          "add",
          [](Program& program, const std::string& kind, const std::vector<int64_t>& sizes,
             const std::vector<Given>& given, const std::vector<double>& constants) {
            std::vector<Operand> operands;
            for (const auto& [slot, offset, type, strides] : given) {
              check(type >= 0 && type <= static_cast<int>(programs::Type::kDouble), "type", type,
                    "must be 0 to 5");
              check(strides.size() <= programs::kAxes, "axes", strides.size(), "must be at most 4");
              Operand operand = {slot, offset, static_cast<programs::Type>(type), {}};
              std::copy(strides.rbegin(), strides.rend(), operand.strides.rbegin());
              operands.push_back(operand);
            }
            program.add(kind, sizes, operands, constants);
          },
          nb::arg("kind"), nb::arg("sizes"), nb::arg("operands"), nb::arg("constants"))
      .def(
          "run",
          [](const Program& program, const std::vector<uint64_t>& addresses) {
            const GilReleased here;
            program.run(addresses);
          },
          nb::arg("addresses"));
}

}  // namespace tengen
