// What only Go has, for Python: score and areas of a position. Moves are played through Game.

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "games/go/go.h"
#include "games/go/handicap.h"
#include "python/bindings.h"

namespace nb = nanobind;

namespace tengen {
namespace {

using Owners = nb::ndarray<nb::numpy, int8_t, nb::ndim<2>>;

class GoPosition {
 public:
  GoPosition(const std::string& name, const std::vector<int>& actions)
      : game_(parse_go_name(name)), state_(game_.initial_state()) {
    for (const int action : actions) {
      if (!game_.is_legal(state_, action)) {
        throw Error("action (" + std::to_string(action) + ") must be legal after " +
                    std::to_string(state_.ply) + " plies; give the moves of one game");
      }
      game_.apply(state_, action);
    }
  }

  double score() const { return game_.score_half_points(state_) / 2.0; }
  bool is_settled() const { return game_.is_settled(state_); }
  Owners area() const { return owners(game_.area(state_)); }
  Owners pass_alive() const { return owners(game_.pass_alive(state_)); }

 private:
  Owners owners(const GoAreas& areas) const {
    const auto height = static_cast<size_t>(game_.height());
    const auto width = static_cast<size_t>(game_.width());
    auto cells = std::make_unique<int8_t[]>(height * width);
    for_each_point(areas[kGoBlack], [&](int point) { cells[static_cast<size_t>(point)] = 1; });
    for_each_point(areas[kGoWhite], [&](int point) { cells[static_cast<size_t>(point)] = -1; });
    nb::capsule owner(cells.get(),
                      [](void* data) noexcept { delete[] static_cast<int8_t*>(data); });
    return Owners(cells.release(), {height, width}, owner);
  }

  Go game_;
  GoState state_;
};

}  // namespace

void bind_go(nb::module_& m) {
  m.def(
      "max_handicap",
      [](const std::string& name) {
        const GoRules rules = parse_go_name(name);
        return max_handicap(rules.height, rules.width);
      },
      nb::arg("name"),
      "Returns how many stones a handicap may have on the board of a game; 0 for none.\n\n"
      "Raises:\n    CoreError: No game of Go.");
  nb::class_<GoPosition>(m, "GoPosition",
                         "A position of Go: who owns what.\n\n"
                         "Threads: shared freely, never changes.")
      .def(nb::init<const std::string&, const std::vector<int>&>(), nb::arg("name"),
           nb::arg("actions"),
           "Plays ``actions`` from the start of the game ``name``.\n\n"
           "Raises:\n    CoreError: No game of Go, or an action is not legal.")
      .def("score", &GoPosition::score,
           "Returns the first player's area less the second's and komi, as the board stands.")
      .def("area", &GoPosition::area,
           "Returns owners ``[H, W]`` int8 by area scoring: 1 the first player, -1 the second, 0.")
      .def("is_settled", &GoPosition::is_settled,
           "Returns whether the game goes on, but nothing changes who owns any point.")
      .def("pass_alive", &GoPosition::pass_alive,
           "Returns owners ``[H, W]`` int8 of what a player keeps though it always passes.");
}

}  // namespace tengen
