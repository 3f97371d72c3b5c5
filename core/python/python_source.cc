#include "python/python_source.h"

#include <nanobind/ndarray.h>

#include <memory>
#include <vector>

#include "base/error.h"
#include "python/gil.h"

namespace nb = nanobind;

namespace tengen {
namespace {

template <class T, int NumDims>
using Array = nb::ndarray<const T, nb::ndim<NumDims>, nb::c_contig, nb::device::cpu>;

PolicyLayout layout_of(const std::string& text) {
  if (text == "cells") return PolicyLayout::kCells;
  if (text == "cells_and_pass") return PolicyLayout::kCellsAndPass;
  if (text == "columns") return PolicyLayout::kColumns;
  return PolicyLayout::kFlat;
}

template <class T>
std::vector<T> table_of(const nb::object& source, const char* name) {
  const auto table = nb::cast<Array<T, 2>>(source.attr(name));
  return std::vector<T>(table.data(), table.data() + table.size());
}

ExternalRules rules_of(const nb::object& source) {
  const auto number = [&](const char* name) { return nb::cast<int>(source.attr(name)); };
  ExternalRules rules;
  rules.name = nb::cast<std::string>(source.attr("name"));
  rules.num_actions = number("num_actions");
  rules.num_planes = number("num_planes");
  rules.height = number("height");
  rules.width = number("width");
  rules.max_plies = number("max_plies");
  rules.policy_layout = layout_of(nb::cast<std::string>(source.attr("policy_layout")));
  rules.num_symmetries = number("num_symmetries");
  rules.action_image = table_of<uint16_t>(source, "action_image");
  rules.plane_origin = table_of<uint32_t>(source, "plane_origin");
  return rules;
}

// Reads the positions that Python returns: to_play [n], outcome [n], num_legal [n], the
// concatenated legal actions, planes [n, N], which legal actions are considered, and decided [n]: 1
// won, 2 lost.
void read_facts(const nb::object& answer, size_t num_values, std::span<PositionFacts> facts) {
  const auto to_play = nb::cast<Array<uint8_t, 1>>(answer[0]);
  const auto outcome = nb::cast<Array<uint8_t, 1>>(answer[1]);
  const auto num_legal = nb::cast<Array<uint32_t, 1>>(answer[2]);
  const auto legal = nb::cast<Array<uint16_t, 1>>(answer[3]);
  const auto planes = nb::cast<Array<float, 2>>(answer[4]);
  const auto considered = nb::cast<Array<uint8_t, 1>>(answer[5]);
  const auto decided = nb::cast<Array<uint8_t, 1>>(answer[6]);
  const uint16_t* next = legal.data();
  for (size_t i = 0; i < facts.size(); ++i) {
    PositionFacts& made = facts[i];
    made.to_play = to_play.data()[i];
    made.outcome = static_cast<Outcome>(outcome.data()[i]);
    made.legal.assign(next, next + num_legal.data()[i]);
    const uint8_t* is_considered = considered.data() + (next - legal.data());
    for (const uint16_t action : made.legal) {
      if (*is_considered++ != 0) made.considered.push_back(action);
    }
    made.decisive = {.count = static_cast<int>(made.considered.size()),
                     .is_won = decided.data()[i] == 1,
                     .is_lost = decided.data()[i] == 2};
    next += num_legal.data()[i];
    if (made.outcome != Outcome::kOngoing) continue;
    const float* row = planes.data() + i * num_values;
    made.planes.assign(row, row + num_values);
  }
}

// Acquires the GIL once per call, for any number of positions. Python exceptions propagate.
class PythonSource final : public StateSource {
 public:
  explicit PythonSource(const nb::object& source)
      : rules_(rules_of(source)), states_(source.attr("open")()) {
    num_values_ = static_cast<size_t>(rules_.num_planes * rules_.height * rules_.width);
  }
  ~PythonSource() override {
    const GilHeld gil;
    states_.reset();
  }
  PythonSource(const PythonSource&) = delete;
  PythonSource& operator=(const PythonSource&) = delete;

  const ExternalRules& rules() const override { return rules_; }

  void expand(std::span<const ExternalMove> moves, std::span<PositionFacts> facts) override {
    const GilHeld gil;
    nb::list asked;
    for (const ExternalMove& move : moves) {
      asked.append(nb::make_tuple(move.parent, move.action, move.child));
    }
    read_facts(states_.attr("expand")(asked), num_values_, facts);
  }

  PositionFacts replay(std::span<const uint16_t> actions, int32_t id) override {
    const GilHeld gil;
    nb::list asked;
    for (const uint16_t action : actions) asked.append(action);
    PositionFacts facts;
    read_facts(states_.attr("replay")(asked, id), num_values_, {&facts, 1});
    return facts;
  }

  Outcome playout(int32_t id, Rng& rng) override {
    const GilHeld gil;
    const nb::object stream = nb::cast(&rng, nb::rv_policy::reference);
    return static_cast<Outcome>(nb::cast<int>(states_.attr("playout")(id, stream)));
  }

  std::string to_string(int32_t id) override {
    const GilHeld gil;
    return nb::cast<std::string>(states_.attr("to_string")(id));
  }

 private:
  ExternalRules rules_;
  nb::object states_;
  size_t num_values_ = 0;
};

}  // namespace

ExternalGame external_game(const nb::object& source) {
  return ExternalGame(std::make_shared<PythonSource>(source));
}

}  // namespace tengen
