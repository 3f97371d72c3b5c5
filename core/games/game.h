#pragma once
// The Game concept: two players, perfect information, zero sum. A Game object holds fixed data
// (size, rules, tables) and is shared read-only between threads; a State is a plain value that can
// be copied freely. The methods that a search calls do not allocate.
//
// Actions are integers 0..num_actions()-1. `first` is player 0, who moves first (in Go always
// Black, even in a handicap game). Planes are float32 [C, H, W], from the side to move's point of
// view; plane 0 is the board mask (1 on the board), so that a network supports several sizes.

#include <concepts>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/hash.h"

namespace tengen {

// How the policy head maps features [C, H, W] to actions.
enum class PolicyLayout : uint8_t {
  kCells = 0,         // num_actions == H * W, action = row * W + column
  kCellsAndPass = 1,  // num_actions == H * W + 1, pass last
  kColumns = 2,       // num_actions == W, action = column
  kFlat = 3,          // any other layout, with a dense layer
};

enum class Outcome : uint8_t { kOngoing = 0, kFirstWins = 1, kSecondWins = 2, kDraw = 3 };

// The value of a finished game for player 0, in {-1, 0, 1}.
constexpr float value_to_first(Outcome outcome) {
  return outcome == Outcome::kFirstWins ? 1.0f : outcome == Outcome::kSecondWins ? -1.0f : 0.0f;
}

template <class G>
concept Game = requires(const G game, typename G::State state, const typename G::State& view,
                        uint16_t* actions, float* planes, int action, int symmetry) {
  requires std::copyable<typename G::State>;
  { game.name() } -> std::convertible_to<std::string>;  // NAME in `tengen train NAME`
  { game.num_actions() } -> std::same_as<int>;
  { game.num_planes() } -> std::same_as<int>;
  { game.height() } -> std::same_as<int>;
  { game.width() } -> std::same_as<int>;
  { game.max_plies() } -> std::same_as<int>;  // the maximum length of a game
  { game.policy_layout() } -> std::same_as<PolicyLayout>;
  { game.num_symmetries() } -> std::same_as<int>;  // includes symmetry 0, the identity
  { game.initial_state() } -> std::same_as<typename G::State>;
  { game.to_play(view) } -> std::same_as<int>;  // 0 first, 1 second
  { game.ply(view) } -> std::same_as<int>;      // number of moves made
  { game.outcome(view) } -> std::same_as<Outcome>;
  // Writes the legal actions, ascending. Returns their number; 0 only if the game has ended.
  { game.legal_actions(view, actions) } -> std::same_as<int>;
  { game.is_legal(view, action) } -> std::same_as<bool>;
  // Precondition: is_legal(state, action), which apply() does not check.
  { game.apply(state, action) } -> std::same_as<void>;
  { game.key(view) } -> std::same_as<Key128>;  // the key covers all that the planes show
  // Writes all num_planes * height * width floats, with the board transformed by `symmetry`.
  { game.encode(view, symmetry, planes) } -> std::same_as<void>;
  // The image of each action under `symmetry`: num_actions() entries, valid while `game` exists.
  { game.images(view, symmetry) } -> std::same_as<const uint16_t*>;
  { game.to_string(view) } -> std::convertible_to<std::string>;
};

// A Game whose positions are computed outside the core, most efficiently in batches. The position
// after a move may be unknown until the move is made (games/external/external_game.h).
template <class G>
concept ExternallyPlayed = Game<G> && requires(const G game, const typename G::State& view) {
  { game.is_known(view, 0) } -> std::same_as<bool>;
};

// A Game that ends with a score in points and an owner of each cell; its first actions are cells.
template <class G>
concept HasScore =
    Game<G> && requires(const G game, const typename G::State& view, int8_t* owners) {
      // A bound in points that winning margins rarely exceed.
      { game.max_score() } -> std::same_as<int>;
      // The number of cells of the position's board.
      { game.num_points(view) } -> std::same_as<int>;
      // Whether the owners of all cells are final although the game has not ended.
      { game.is_settled(view) } -> std::same_as<bool>;
      // The first player's points minus the second's, in a game that has ended or is settled.
      { game.score(view) } -> std::same_as<float>;
      // Writes height * width owners, in a game that has ended or is settled: 1 first player, -1
      // second player, 0 nobody or off the board.
      { game.owners(view, owners) } -> std::same_as<void>;
    };

// A HasScore game in which cells get a permanent owner during the game.
template <class G>
concept HasPassAlive =
    HasScore<G> && requires(const G game, const typename G::State& view, uint8_t* cells) {
      // Writes height * width cells: 1 if the cell has a permanent owner, otherwise 0.
      { game.pass_alive_cells(view, cells) } -> std::same_as<void>;
    };

// The number of cells of the position's board.
template <Game G>
int board_area(const G& game, const typename G::State& view) {
  if constexpr (HasScore<G>) {
    return game.num_points(view);
  } else {
    return game.height() * game.width();
  }
}

// A HasScore game whose second player receives extra points (komi), counted in half points. A
// position can be evaluated with a different komi.
template <class G>
concept HasKomi = HasScore<G> && requires(const G game, typename G::State state,
                                          const typename G::State& view, int half_points) {
  { game.komi_half_points(view) } -> std::same_as<int>;
  // Changes only the komi, not the board, the history or the side to move.
  { game.set_komi_half_points(state, half_points) } -> std::same_as<void>;
};

constexpr Outcome outcome_of_score(float score_to_first) {
  return score_to_first > 0.0f   ? Outcome::kFirstWins
         : score_to_first < 0.0f ? Outcome::kSecondWins
                                 : Outcome::kDraw;
}

// A Game with variants, which differ in board size or rules. Variants share the planes and the
// actions of the game; a state stores its variant.
template <class G>
concept HasVariants = Game<G> && requires(const G game, const std::string& variant) {
  // The initial state of `variant`. Throws Error if the variant does not fit the game.
  { game.initial_state(variant) } -> std::same_as<typename G::State>;
};

// Returns the initial state of `variant`, or of the game itself if `variant` is empty. Throws Error
// if the game has no such variant.
template <Game G>
typename G::State initial_state_of(const G& game, const std::string& variant) {
  if (variant.empty()) return game.initial_state();
  if constexpr (HasVariants<G>) {
    return game.initial_state(variant);
  } else {
    throw Error("variant (" + variant + ") must be empty in " + std::string(game.name()) +
                ", which has no variants; leave it out");
  }
}

// Plays `moves` on `state`. Throws Error if a move is illegal; `what` is its name in the error.
template <Game G, class Moves>
void play_moves(const G& game, typename G::State& state, const Moves& moves,
                const char* what = "move") {
  int ply = 0;
  for (const int move : moves) {
    if (!game.is_legal(state, move)) {
      throw Error(std::string(what) + " (" + std::to_string(move) + ") must be legal at ply " +
                  std::to_string(ply) + " in " + std::string(game.name()) +
                  "; give the moves of one game");
    }
    game.apply(state, move);
    ++ply;
  }
}

}  // namespace tengen
