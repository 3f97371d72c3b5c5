// Bindings of the native games: one Game class and one State class for all games. Only Python uses
// the virtual calls, because the search is a template over the concrete Game.

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "games/external/external_game.h"
#include "games/perft.h"
#include "games/registry/registry.h"
#include "python/arrays.h"
#include "python/bindings.h"
#include "python/gil.h"

namespace nb = nanobind;

namespace tengen {
namespace {

using Planes = nb::ndarray<nb::numpy, float, nb::ndim<3>>;

const char* layout_text(PolicyLayout layout) {
  switch (layout) {
    case PolicyLayout::kCells:
      return "cells";
    case PolicyLayout::kCellsAndPass:
      return "cells_and_pass";
    case PolicyLayout::kColumns:
      return "columns";
    case PolicyLayout::kFlat:
      break;
  }
  return "flat";
}

class AnyState {
 public:
  virtual ~AnyState() = default;
  virtual std::unique_ptr<AnyState> clone() const = 0;
  virtual int to_play() const = 0;
  virtual int ply() const = 0;
  virtual Outcome outcome() const = 0;
  virtual std::vector<int> legal_actions() const = 0;
  virtual void apply(int action) = 0;
  virtual Key128 key() const = 0;
  virtual Planes observation(int symmetry) const = 0;
  virtual std::string to_string() const = 0;
};

class AnyGame {
 public:
  virtual ~AnyGame() = default;
  virtual std::string name() const = 0;
  virtual int num_actions() const = 0;
  virtual int num_planes() const = 0;
  virtual int height() const = 0;
  virtual int width() const = 0;
  virtual int max_plies() const = 0;
  virtual PolicyLayout policy_layout() const = 0;
  virtual int num_symmetries() const = 0;
  virtual int max_score() const = 0;
  virtual std::unique_ptr<AnyState> new_state(const std::string& variant) const = 0;
  virtual int transform_action(int action, int symmetry) const = 0;
  virtual uint64_t perft_from_start(int depth) const = 0;
};

template <Game G>
void check_symmetry(const G& game, int symmetry) {
  if (symmetry < 0 || symmetry >= game.num_symmetries()) {
    throw Error("symmetry (" + std::to_string(symmetry) + ") must be 0 to " +
                std::to_string(game.num_symmetries() - 1) + "; see num_symmetries");
  }
}

template <Game G>
class StateOf final : public AnyState {
 public:
  StateOf(std::shared_ptr<const G> game, const std::string& variant)
      : game_(std::move(game)), state_(initial_state_of(*game_, variant)) {}

  std::unique_ptr<AnyState> clone() const override { return std::make_unique<StateOf>(*this); }
  int to_play() const override { return game_->to_play(state_); }
  int ply() const override { return game_->ply(state_); }
  Outcome outcome() const override { return game_->outcome(state_); }

  std::vector<int> legal_actions() const override {
    std::vector<uint16_t> actions(static_cast<size_t>(game_->num_actions()));
    const int num_legal = game_->legal_actions(state_, actions.data());
    return {actions.begin(), actions.begin() + num_legal};
  }
  void apply(int action) override {
    if (!game_->is_legal(state_, action)) {
      const std::string name = "action (" + std::to_string(action) + ") ";
      throw Error(outcome() == Outcome::kOngoing
                      ? name + "must be legal in this position; choose one of legal_actions()"
                      : name + "cannot be played in a finished game; start with new_state()");
    }
    game_->apply(state_, action);
  }
  Key128 key() const override { return game_->key(state_); }

  Planes observation(int symmetry) const override {
    check_symmetry(*game_, symmetry);
    const auto num_planes = static_cast<size_t>(game_->num_planes());
    const auto height = static_cast<size_t>(game_->height());
    const auto width = static_cast<size_t>(game_->width());
    Planes planes = make_array<float>(std::array{num_planes, height, width});
    game_->encode(state_, symmetry, planes.data());
    return planes;
  }
  std::string to_string() const override { return game_->to_string(state_); }

 private:
  std::shared_ptr<const G> game_;
  typename G::State state_;
};

template <Game G>
class GameOf final : public AnyGame {
 public:
  explicit GameOf(G game) : game_(std::make_shared<const G>(std::move(game))) {}

  std::string name() const override { return game_->name(); }
  int num_actions() const override { return game_->num_actions(); }
  int num_planes() const override { return game_->num_planes(); }
  int height() const override { return game_->height(); }
  int width() const override { return game_->width(); }
  int max_plies() const override { return game_->max_plies(); }
  PolicyLayout policy_layout() const override { return game_->policy_layout(); }
  int num_symmetries() const override { return game_->num_symmetries(); }
  int max_score() const override {
    if constexpr (HasScore<G>) return game_->max_score();
    return 0;
  }
  std::unique_ptr<AnyState> new_state(const std::string& variant) const override {
    return std::make_unique<StateOf<G>>(game_, variant);
  }
  int transform_action(int action, int symmetry) const override {
    check_symmetry(*game_, symmetry);
    if (action < 0 || action >= num_actions()) {
      throw Error("action (" + std::to_string(action) + ") must be 0 to " +
                  std::to_string(num_actions() - 1) + "; see num_actions");
    }
    return game_->images(game_->initial_state(), symmetry)[action];
  }
  uint64_t perft_from_start(int depth) const override {
    return perft(*game_, game_->initial_state(), depth);
  }

 private:
  std::shared_ptr<const G> game_;
};

std::pair<float, float> returns_of(const AnyState& state) {
  const Outcome outcome = state.outcome();
  if (outcome == Outcome::kOngoing) {
    throw Error("returns (after " + std::to_string(state.ply()) +
                " plies) need a finished game; call is_terminal() first");
  }
  const float first = value_to_first(outcome);
  return {first, first == 0.0f ? 0.0f : -first};
}

void bind_state(nb::module_& m) {
  nb::class_<AnyState>(m, "State",
                       "A position of a native game.\n\n"
                       "Threads: one thread at a time; use clone() for another thread.")
      .def_prop_ro("to_play", &AnyState::to_play, "Side to move: 0 first player, 1 second player.")
      .def_prop_ro("ply", &AnyState::ply, "Number of moves made so far.")
      .def("legal_actions", &AnyState::legal_actions,
           "Returns the legal actions in increasing order; empty if the game has ended.")
      .def("apply", &AnyState::apply, nb::arg("action"),
           "Plays ``action``.\n\nRaises:\n    CoreError: ``action`` is illegal.")
      .def("clone", &AnyState::clone, "Returns a copy that shares nothing with this state.")
      .def(
          "is_terminal", [](const AnyState& state) { return state.outcome() != Outcome::kOngoing; },
          "Returns whether the game has ended.")
      .def("returns", &returns_of,
           "Returns the players' results ``(first, second)`` in {-1, 0, 1}; their sum is 0.\n\n"
           "Raises:\n    CoreError: The game has not ended.")
      .def("observation", &AnyState::observation, nb::arg("symmetry") = 0,
           "Returns the planes ``[C, H, W]`` float32 from the side to move's point of view.\n\n"
           "Each call returns a new array. core/games/planes.h lists the planes.\n\n"
           "Args:\n    symmetry: The transformation of the board, 0 to num_symmetries - 1.")
      .def(
          "key",
          [](const AnyState& state) {
            const Key128 key = state.key();
            return std::pair(key.lo, key.hi);
          },
          "Returns a 128-bit hash ``(lo, hi)`` of all state that the planes depend on.")
      .def("__str__", &AnyState::to_string);
}

void bind_game(nb::module_& m) {
  nb::class_<AnyGame>(m, "Game",
                      "The fixed properties of a native game. Immutable and thread-safe.")
      .def_prop_ro("name", &AnyGame::name, "The name, as in ``tengen train NAME``.")
      .def_prop_ro("num_actions", &AnyGame::num_actions, "Actions are 0 to num_actions - 1.")
      .def_prop_ro("num_planes", &AnyGame::num_planes, "Number of observation planes, C.")
      .def_prop_ro("height", &AnyGame::height, "Number of rows of a plane, H.")
      .def_prop_ro("width", &AnyGame::width, "Number of columns of a plane, W.")
      .def_prop_ro("max_plies", &AnyGame::max_plies, "The maximum length of a game, in plies.")
      .def_prop_ro(
          "policy_layout", [](const AnyGame& game) { return layout_text(game.policy_layout()); },
          "How the policy head maps planes to actions: cells, cells_and_pass, columns or flat.")
      .def_prop_ro("num_symmetries", &AnyGame::num_symmetries,
                   "Number of symmetries of the board; 0 is the identity.")
      .def_prop_ro("max_score", &AnyGame::max_score,
                   "A margin in points that wins rarely exceed; 0 if the game has no score.")
      .def(
          "new_state", &AnyGame::new_state, nb::arg("variant") = "",
          "Returns the position before the first move.\n\n"
          "Args:\n    variant: The name of a variant, whose board must fit; only Go has variants.\n"
          "        Empty: the game itself.\n\n"
          "Raises:\n    CoreError: The game has no such variant.")
      .def("transform_action", &AnyGame::transform_action, nb::arg("action"), nb::arg("symmetry"),
           "Returns the image of ``action`` under ``symmetry``.")
      .def("perft", &AnyGame::perft_from_start, nb::arg("depth"), WithoutGil(),
           "Returns the number of move sequences of exactly ``depth`` plies from the start.\n\n"
           "For tests: exponential in depth. Releases the GIL.");
}

}  // namespace

void bind_games(nb::module_& m) {
  bind_state(m);
  bind_game(m);
  m.def(
      "make_game",
      [](const std::string& name) {
        return with_game(name, [](auto&& game) -> std::unique_ptr<AnyGame> {
          using G = std::decay_t<decltype(game)>;
          return std::make_unique<GameOf<G>>(std::forward<decltype(game)>(game));
        });
      },
      nb::arg("name"),
      "Returns the native game of that name.\n\nRaises:\n    CoreError: Unknown name or size.");
  m.def(
      "planes_key",
      [](const nb::ndarray<const float, nb::c_contig, nb::device::cpu>& planes) {
        const Key128 key = planes_key(planes.data(), planes.size());
        return std::pair(key.lo, key.hi);
      },
      nb::arg("planes"), "Returns the key of a position of a Python game: the hash of its planes.");
  m.def("known_games", &known_games, "Returns every name that make_game accepts.");
}

}  // namespace tengen
