// Bindings only for Go: scores and areas of positions, and the rules in the name of a game.

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "games/go/go.h"
#include "games/go/ladders/ladder.h"
#include "games/go/rules/handicap.h"
#include "games/go/rules/rules.h"
#include "python/arrays.h"
#include "python/bindings.h"

namespace nb = nanobind;

namespace tengen {
namespace {

template <class T>
using Cells = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

class GoPosition {
 public:
  GoPosition(const std::string& name, const std::vector<int>& actions)
      : game_(parse_go_name(name)), state_(game_.initial_state()) {
    play_moves(game_, state_, actions, "action");
  }

  double score() const { return game_.score_half_points(state_) / 2.0; }
  bool is_settled() const { return game_.is_settled(state_); }
  Cells<int8_t> area() const { return owners(game_.area(state_)); }
  Cells<int8_t> pass_alive() const { return owners(game_.pass_alive(state_)); }
  std::pair<Cells<bool>, Cells<bool>> ladders() const {
    const GoLadders found = ladders_of(state_.layout->board(), state_);
    return {cells<bool>({{&found.laddered, true}}), cells<bool>({{&found.working_moves, true}})};
  }

 private:
  Cells<int8_t> owners(const GoAreas& areas) const {
    return cells<int8_t>({{&areas[kGoBlack], 1}, {&areas[kGoWhite], -1}});
  }
  // Returns an array with the value of each set at its points, and 0 elsewhere.
  template <class T>
  Cells<T> cells(std::initializer_list<std::pair<const PointSet*, T>> sets) const {
    const auto height = static_cast<size_t>(game_.height());
    const auto width = static_cast<size_t>(game_.width());
    Cells<T> values = make_array<T>(std::array{height, width});
    std::fill_n(values.data(), values.size(), T{});
    for (const auto& [set, value] : sets) {
      for_each_point(*set, [&](int point) { values.data()[point] = value; });
    }
    return values;
  }

  Go game_;
  GoState state_;
};

constexpr const char* kKoNames[] = {"positional", "situational", "simple"};

GoKo ko_of(const std::string& name) {
  for (size_t i = 0; i < std::size(kKoNames); ++i) {
    if (name == kKoNames[i]) return static_cast<GoKo>(i);
  }
  throw Error("ko (" + name + ") must be positional, situational or simple; change it");
}

int half_points_of(double komi) {
  const double half_points = 2.0 * komi;
  if (!(std::abs(half_points) < 1e6) || half_points != std::floor(half_points)) {
    throw Error("komi (" + std::to_string(komi) + ") must be whole or half points; change it");
  }
  return static_cast<int>(half_points);
}

void bind_rules(nb::module_& m) {
  nb::class_<GoRules>(m, "GoRules",
                      "The rules in the name of a game of Go; see core/games/go/rules/rules.h.\n\n"
                      "Threads: one at a time.")
      .def(
          "__init__",
          [](GoRules* self, int height, int width) {
            new (self) GoRules(make_go_rules(height, width));
          },
          nb::arg("height"), nb::arg("width"), "The default rules on a board of any size.")
      .def_rw("height", &GoRules::height, "Number of rows.")
      .def_rw("width", &GoRules::width, "Number of columns.")
      .def_prop_rw(
          "ko", [](const GoRules& r) { return kKoNames[static_cast<size_t>(r.ko)]; },
          [](GoRules& r, const std::string& name) { r.ko = ko_of(name); },
          "``positional``, ``situational`` or ``simple``.")
      .def_rw("may_suicide", &GoRules::may_suicide, "Whether a chain may fill its last liberty.")
      .def_prop_rw(
          "komi", [](const GoRules& r) { return r.komi_half_points / 2.0; },
          [](GoRules& r, double komi) { r.komi_half_points = half_points_of(komi); },
          "White's komi, in whole or half points.")
      .def_rw("handicap", &GoRules::handicap, "Number of Black's handicap stones.")
      .def_rw("max_plies", &GoRules::max_plies, "The maximum length of a game, in plies.")
      .def_prop_ro("name", &go_name, "The name of the game; invalid if the rules are.");
  m.def("parse_go_name", &parse_go_name, nb::arg("name"),
        "Returns the rules in ``name``.\n\nRaises:\n    CoreError: ``name`` is not a game of Go.");
  m.def(
      "handicap_points",
      [](int height, int width, int num_stones) {
        if (num_stones < 2 || num_stones > max_handicap(height, width)) {
          throw Error("handicap (" + std::to_string(num_stones) + ") must be 2 to " +
                      std::to_string(max_handicap(height, width)) + " on this board; change it");
        }
        const auto points = handicap_points(height, width, num_stones);
        return std::vector<int>(points.begin(), points.begin() + num_stones);
      },
      nb::arg("height"), nb::arg("width"), nb::arg("num_stones"),
      "Returns the fixed points of handicap stones, as row * width + column.\n\n"
      "Raises:\n    CoreError: ``num_stones`` is below 2 or too large for the board.");
}

}  // namespace

void bind_go(nb::module_& m) {
  m.def(
      "max_handicap",
      [](const std::string& name) {
        const GoRules rules = parse_go_name(name);
        return max_handicap(rules.height, rules.width);
      },
      nb::arg("name"),
      "Returns the maximum number of handicap stones on the board of a game; 0 if none fit.\n\n"
      "Raises:\n    CoreError: ``name`` is not a game of Go.");
  bind_rules(m);
  nb::class_<GoPosition>(m, "GoPosition",
                         "The score, ownership and ladders of a Go position.\n\n"
                         "Immutable and thread-safe.")
      .def(nb::init<const std::string&, const std::vector<int>&>(), nb::arg("name"),
           nb::arg("actions"),
           "Plays ``actions`` from the start of the game ``name``.\n\n"
           "Raises:\n    CoreError: ``name`` is not a game of Go, or an action is illegal.")
      .def("score", &GoPosition::score,
           "Returns Black's area minus White's area and komi, on the current board.")
      .def("area", &GoPosition::area,
           "Returns owners ``[H, W]`` int8 by area scoring: 1 Black, -1 White, 0 neither.")
      .def("is_settled", &GoPosition::is_settled,
           "Returns whether the owner of every point is settled before the game has ended.")
      .def("pass_alive", &GoPosition::pass_alive,
           "Returns owners ``[H, W]`` int8 of points that a player keeps even if it always passes.")
      .def(
          "ladders", &GoPosition::ladders,
          "Returns two ``[H, W]`` bool arrays: stones caught in a ladder, and moves of the side to "
          "move that start a working ladder; see core/games/go/ladders/ladder.h.");
}

}  // namespace tengen
