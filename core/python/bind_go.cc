// What only Go has, for Python: score and areas of a position. Moves are played through Game.

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "games/go/go.h"
#include "games/go/ladder.h"
#include "python/bindings.h"

namespace nb = nanobind;

namespace tengen {
namespace {

template <class T>
using Cells = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

class GoPosition {
 public:
  GoPosition(const std::string& name, const std::vector<int>& actions)
      : game_(parse_go_name(name)),
        board_(game_.height(), game_.width()),
        state_(game_.initial_state()) {
    for (const int action : actions) {
      if (!game_.is_legal(state_, action)) {
        throw Error("action (" + std::to_string(action) + ") must be legal after " +
                    std::to_string(state_.ply) + " plies; give the moves of one game");
      }
      game_.apply(state_, action);
    }
  }

  double score() const { return game_.score_half_points(state_) / 2.0; }
  Cells<int8_t> area() const { return owners(game_.area(state_)); }
  Cells<int8_t> pass_alive() const { return owners(game_.pass_alive(state_)); }
  std::pair<Cells<bool>, Cells<bool>> ladders() const {
    const GoLadders found = ladders_of(board_, state_);
    return {cells<bool>({{&found.laddered, true}}), cells<bool>({{&found.working_moves, true}})};
  }

 private:
  Cells<int8_t> owners(const GoAreas& areas) const {
    return cells<int8_t>({{&areas[kGoBlack], 1}, {&areas[kGoWhite], -1}});
  }
  // Zeros, and in each set its value.
  template <class T>
  Cells<T> cells(std::initializer_list<std::pair<const PointSet*, T>> sets) const {
    const auto height = static_cast<size_t>(game_.height());
    const auto width = static_cast<size_t>(game_.width());
    auto values = std::make_unique<T[]>(height * width);
    for (const auto& [set, value] : sets) {
      for_each_point(*set, [&](int point) { values[static_cast<size_t>(point)] = value; });
    }
    nb::capsule owner(values.get(), [](void* data) noexcept { delete[] static_cast<T*>(data); });
    return Cells<T>(values.release(), {height, width}, owner);
  }

  Go game_;
  GoBoard board_;
  GoState state_;
};

}  // namespace

void bind_go(nb::module_& m) {
  nb::class_<GoPosition>(m, "GoPosition",
                         "A position of Go: who owns what, and ladders.\n\n"
                         "Threads: shared freely, never changes.")
      .def(nb::init<const std::string&, const std::vector<int>&>(), nb::arg("name"),
           nb::arg("actions"),
           "Plays ``actions`` from the start of the game ``name``.\n\n"
           "Raises:\n    CoreError: No game of Go, or an action is not legal.")
      .def("score", &GoPosition::score,
           "Returns the first player's area less the second's and komi, as the board stands.")
      .def("area", &GoPosition::area,
           "Returns owners ``[H, W]`` int8 by area scoring: 1 the first player, -1 the second, 0.")
      .def("pass_alive", &GoPosition::pass_alive,
           "Returns owners ``[H, W]`` int8 of what a player keeps though it always passes.")
      .def("ladders", &GoPosition::ladders,
           "Returns the stones that a ladder catches and the moves of the side to move that begin "
           "one, each ``[H, W]`` bool; core/games/go/ladder.h says when.");
}

}  // namespace tengen
