#pragma once
// The Game concept: perfect information, two players, zero sum. A Game object holds what is
// fixed (size, rules, tables) and is shared read-only between threads; a State is a plain
// value that is copied freely. No method allocates.
//
// Actions are integers 0..num_actions()-1. `first` is player 0, who moves first; in a handicap game
// of Go it is Black all the same.
// Planes are float32 [C, H, W], from the side to move's point of view; plane 0 is the board
// mask (1 on the board), so that one net serves several sizes.

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
  kFlat = 3,          // anything else: a dense layer
};

enum class Outcome : uint8_t { kOngoing = 0, kFirstWins = 1, kSecondWins = 2, kDraw = 3 };

// Value of a finished game to player 0, in {-1, 0, 1}.
constexpr float value_to_first(Outcome outcome) {
  return outcome == Outcome::kFirstWins ? 1.0f : outcome == Outcome::kSecondWins ? -1.0f : 0.0f;
}

template <class G>
concept Game = requires(const G game, typename G::State state, const typename G::State& view,
                        uint16_t* actions, float* planes, int action, int symmetry) {
  requires std::copyable<typename G::State>;
  { game.name() } -> std::convertible_to<std::string>;  // as in `tengen train NAME`
  { game.num_actions() } -> std::same_as<int>;
  { game.num_planes() } -> std::same_as<int>;
  { game.height() } -> std::same_as<int>;
  { game.width() } -> std::same_as<int>;
  { game.max_plies() } -> std::same_as<int>;  // no game is longer
  { game.policy_layout() } -> std::same_as<PolicyLayout>;
  { game.num_symmetries() } -> std::same_as<int>;  // 1 where there is none; 0 is identity
  { game.initial_state() } -> std::same_as<typename G::State>;
  { game.to_play(view) } -> std::same_as<int>;  // 0 first, 1 second
  { game.ply(view) } -> std::same_as<int>;      // moves made so far
  { game.outcome(view) } -> std::same_as<Outcome>;
  // Writes the legal actions in increasing order; returns how many (0 only when finished).
  { game.legal_actions(view, actions) } -> std::same_as<int>;
  { game.is_legal(view, action) } -> std::same_as<bool>;
  // Precondition: is_legal(state, action). Not checked here.
  { game.apply(state, action) } -> std::same_as<void>;
  { game.key(view) } -> std::same_as<Key128>;  // everything that planes depend on
  // Writes all num_planes * height * width floats, the board transformed by `symmetry`.
  { game.encode(view, symmetry, planes) } -> std::same_as<void>;
  // What each action becomes when the board is transformed by `symmetry`: num_actions() entries,
  // which live as long as the game.
  { game.images(view, symmetry) } -> std::same_as<const uint16_t*>;
  { game.to_string(view) } -> std::convertible_to<std::string>;
};

// A Game whose positions are made outside the core and best many at a time: a move may be unknown
// until it is made (games/external/external_game.h).
template <class G>
concept ExternallyPlayed = Game<G> && requires(const G game, const typename G::State& view) {
  { game.is_known(view, 0) } -> std::same_as<bool>;
};

// A Game that ends with a score in points, and with an owner of each cell. Its actions begin with
// the cells.
template <class G>
concept HasScore =
    Game<G> && requires(const G game, const typename G::State& view, int8_t* owners) {
      // Points that a game is hardly ever won by more than.
      { game.max_score() } -> std::same_as<int>;
      // Cells of the board that this game is played on.
      { game.num_points(view) } -> std::same_as<int>;
      // Whether the game goes on, but no play of anybody's changes who owns any cell.
      { game.is_settled(view) } -> std::same_as<bool>;
      // The first player's points less the second's, of a game that is over or settled.
      { game.score(view) } -> std::same_as<float>;
      // Writes height * width owners in such a game: 1 the first player, -1 the second, 0 nobody or
      // beyond the board.
      { game.owners(view, owners) } -> std::same_as<void>;
    };

// A HasScore in which sides come to own cells for good while the game goes on.
template <class G>
concept HasPassAlive =
    HasScore<G> && requires(const G game, const typename G::State& view, uint8_t* cells) {
      // Writes height * width cells: 1 where the cell is somebody's whatever is played, else 0.
      { game.pass_alive_cells(view, cells) } -> std::same_as<void>;
    };

// Cells of the board that the game of a position is played on.
template <Game G>
int board_area(const G& game, const typename G::State& view) {
  if constexpr (HasScore<G>) {
    return game.num_points(view);
  } else {
    return game.height() * game.width();
  }
}

// A HasScore whose second player is given points, komi, in half points. A position may be asked for
// as it would be with another komi.
template <class G>
concept HasKomi = HasScore<G> && requires(const G game, typename G::State state,
                                          const typename G::State& view, int half_points) {
  { game.komi_half_points(view) } -> std::same_as<int>;
  // Everything else stays: board, history, side to move.
  { game.set_komi_half_points(state, half_points) } -> std::same_as<void>;
};

constexpr Outcome outcome_of_score(float score_to_first) {
  return score_to_first > 0.0f   ? Outcome::kFirstWins
         : score_to_first < 0.0f ? Outcome::kSecondWins
                                 : Outcome::kDraw;
}

// A Game some of whose games are played otherwise: on a smaller board, by other rules. The planes
// and the actions are those of the game; the state knows what it is.
template <class G>
concept HasVariants = Game<G> && requires(const G game, const std::string& variant) {
  // The start of the game of that name. Throws Error for one that does not fit.
  { game.initial_state(variant) } -> std::same_as<typename G::State>;
};

// The start of the game that `variant` names, or of the game itself where it is empty. Throws Error
// for a variant that the game does not have.
template <Game G>
typename G::State initial_state_of(const G& game, const std::string& variant) {
  if (variant.empty()) return game.initial_state();
  if constexpr (HasVariants<G>) {
    return game.initial_state(variant);
  } else {
    throw Error("variant (" + variant + ") must be empty in " + std::string(game.name()) +
                ", which is played one way; leave it out");
  }
}

}  // namespace tengen
