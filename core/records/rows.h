#pragma once
// Derives training rows: replays a game to the ply of a row, encodes the position, and writes the
// targets from the point of view of the side to move.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "games/game.h"
#include "records/game_record.h"
#include "records/game_rows.h"

namespace tengen {

template <Game G>
class RowsOf final : public GameRows {
 public:
  explicit RowsOf(G game) : game_(std::move(game)) {}

  int num_planes() const override { return game_.num_planes(); }
  int height() const override { return game_.height(); }
  int width() const override { return game_.width(); }
  int num_actions() const override { return game_.num_actions(); }
  int num_symmetries() const override { return game_.num_symmetries(); }
  int max_score() const override {
    if constexpr (HasScore<G>) return game_.max_score();
    return 0;
  }

 private:
  using State = typename G::State;

  // Checks that every action and policy entry is legal, so that fill_row() need not check. A game
  // may stop early (resigned, adjudicated); otherwise its outcome must be the recorded outcome.
  void replay_games(RowSegment& segment) const override {
    segment.to_play.resize(segment.action.size());
    for (size_t game = 0; game < segment.outcome.size(); ++game) {
      State state = initial_state_of(game_, segment.variant[game]);
      size_t ply = 0;
      for (size_t i = segment.first_opening[game]; i < segment.first_opening[game + 1]; ++i) {
        check_legal(state, segment.opening[i], game, ply++);
        game_.apply(state, segment.opening[i]);
      }
      for (size_t i = segment.first_ply[game]; i < segment.first_ply[game + 1]; ++i, ++ply) {
        for (size_t entry = segment.first_entry[i]; entry < segment.first_entry[i + 1]; ++entry) {
          check_legal(state, segment.policy_action[entry], game, ply);
        }
        check_legal(state, segment.action[i], game, ply);
        segment.to_play[i] = static_cast<uint8_t>(game_.to_play(state));
        game_.apply(state, segment.action[i]);
      }
      const Outcome recorded = static_cast<Outcome>(segment.outcome[game]);
      const Outcome reached = game_.outcome(state);
      if (recorded == Outcome::kOngoing || recorded > Outcome::kDraw ||
          (reached != Outcome::kOngoing && reached != recorded)) {
        throw Error("outcome (" + std::to_string(segment.outcome[game]) + ") of game " +
                    std::to_string(game) + " must be the one its moves lead to (" +
                    std::to_string(static_cast<int>(reached)) + "); the segment is of another " +
                    "game or damaged");
      }
      note_score(state, segment);
    }
  }

  void note_score(const State& last, RowSegment& segment) const {
    if constexpr (HasScore<G>) {
      // A game that ended by resignation or repetition has no score.
      const float score = game_.score(last);
      const Outcome reached = game_.outcome(last);
      const bool is_over = reached == Outcome::kOngoing ? game_.is_settled(last)
                                                        : reached == outcome_of_score(score);
      segment.is_scored.push_back(is_over);
      segment.score.push_back(is_over ? score : 0.0f);
      const size_t num_cells = static_cast<size_t>(game_.height()) * game_.width();
      segment.owners.resize(segment.owners.size() + num_cells);
      if (is_over) game_.owners(last, segment.owners.data() + segment.owners.size() - num_cells);
    }
  }

  void check_legal(const State& state, int action, size_t game, size_t ply) const {
    if (game_.outcome(state) == Outcome::kOngoing && action < game_.num_actions() &&
        game_.is_legal(state, action)) {
      return;
    }
    throw Error("action (" + std::to_string(action) + ") must be legal in " +
                std::string(game_.name()) + " at ply " + std::to_string(ply) + " of game " +
                std::to_string(game) + "; the segment is of another game or damaged");
  }

  void fill_row(const RowSegment& segment, uint32_t ply, int symmetry, size_t at,
                const BatchView& out, uint16_t* scratch) const override {
    const auto after = std::upper_bound(segment.first_ply.begin(), segment.first_ply.end(), ply);
    const size_t game = static_cast<size_t>(after - segment.first_ply.begin()) - 1;
    const State state = state_before(segment, game, ply);
    const size_t num_cells = static_cast<size_t>(game_.height()) * game_.width();
    game_.encode(state, symmetry, out.planes + at * game_.num_planes() * num_cells);
    fill_policy(segment, ply, state, symmetry, at, out, scratch);
    out.policy_weight[at] = segment.policy_weight[ply];
    out.value_weight[at] = segment.value_weight[ply];
    out.search_value[at] = segment.root_value[ply];
    const float to_first = value_to_first(static_cast<Outcome>(segment.outcome[game]));
    const float to_play = game_.to_play(state) == 0 ? to_first : -to_first;
    out.outcome[3 * at] = to_play > 0.0f ? 1.0f : 0.0f;
    out.outcome[3 * at + 1] = to_play == 0.0f ? 1.0f : 0.0f;
    out.outcome[3 * at + 2] = to_play < 0.0f ? 1.0f : 0.0f;
    if (out.auxiliary.reply != nullptr) {
      const uint16_t* const images = game_.images(state, symmetry);
      fill_reply(segment, game, ply, images, at, out.auxiliary);
      fill_horizons(segment, game, ply, state, to_first, at, out.auxiliary);
      fill_end(segment, game, ply, images, at, out.auxiliary);
      fill_lead(segment, ply, at, out.auxiliary);
    }
  }

  void fill_reply(const RowSegment& segment, size_t game, uint32_t ply, const uint16_t* images,
                  size_t at, const AuxiliaryView& out) const {
    const size_t num_actions = static_cast<size_t>(game_.num_actions());
    float* reply = out.reply + at * num_actions;
    std::fill_n(reply, num_actions, 0.0f);
    const uint32_t next = ply + 1;
    const bool has_reply = next < segment.first_ply[game + 1];
    out.reply_weight[at] = has_reply ? segment.policy_weight[ply] : 0.0f;
    if (!has_reply) return;
    if (segment.first_entry[next] == segment.first_entry[next + 1]) {
      reply[images[segment.action[next]]] = 1.0f;
    } else {
      add_policy(segment, next, images, reply);
    }
  }

  void fill_horizons(const RowSegment& segment, size_t game, uint32_t ply, const State& state,
                     float to_first, size_t at, const AuxiliaryView& out) const {
    const uint8_t player = segment.to_play[ply];
    const auto area = static_cast<float>(board_area(game_, state));
    for (size_t horizon = 0; horizon < kHorizons.size(); ++horizon) {
      const float now = 1.0f / (1.0f + kHorizons[horizon] * area);
      float value = player == 0 ? to_first : -to_first;
      for (uint32_t i = segment.first_ply[game + 1]; i-- > ply;) {
        const float searched = segment.root_value[i];
        value += now * ((segment.to_play[i] == player ? searched : -searched) - value);
      }
      out.horizons[kHorizons.size() * at + horizon] = value;
    }
  }

  void fill_end(const RowSegment& segment, size_t game, uint32_t ply, const uint16_t* images,
                size_t at, const AuxiliaryView& out) const {
    if constexpr (HasScore<G>) {
      const size_t num_cells = static_cast<size_t>(game_.height()) * game_.width();
      const int8_t* const owners = segment.owners.data() + game * num_cells;
      const float sign = segment.to_play[ply] == 0 ? 1.0f : -1.0f;
      float* const ownership = out.ownership + at * num_cells;
      std::fill_n(ownership, num_cells, 0.0f);
      for (size_t cell = 0; cell < num_cells; ++cell) {
        if (owners[cell] != 0) ownership[images[cell]] = sign * static_cast<float>(owners[cell]);
      }
      out.score[at] = sign * segment.score[game];
      out.final_weight[at] = segment.is_scored[game] ? segment.value_weight[ply] : 0.0f;
    }
  }

  void fill_lead(const RowSegment& segment, uint32_t ply, size_t at,
                 const AuxiliaryView& out) const {
    if constexpr (HasScore<G>) {
      const int16_t lead = segment.lead.empty() ? kNoLead : segment.lead[ply];
      out.lead[at] = lead == kNoLead ? 0.0f : static_cast<float>(lead) / kLeadsPerPoint;
      out.lead_weight[at] = lead == kNoLead ? 0.0f : segment.value_weight[ply];
    }
  }

  State state_before(const RowSegment& segment, size_t game, uint32_t ply) const {
    const uint16_t* const opening = segment.opening.data() + segment.first_opening[game];
    const uint16_t* const opening_end = segment.opening.data() + segment.first_opening[game + 1];
    const uint16_t* const played = segment.action.data() + segment.first_ply[game];
    const uint16_t* const played_end = segment.action.data() + ply;
    if constexpr (ExternallyPlayed<G>) {
      std::vector<uint16_t> moves(opening, opening_end);
      moves.insert(moves.end(), played, played_end);
      return game_.state_after(moves);
    } else {
      State state = initial_state_of(game_, segment.variant[game]);
      for (const uint16_t* move = opening; move != opening_end; ++move) game_.apply(state, *move);
      for (const uint16_t* move = played; move != played_end; ++move) game_.apply(state, *move);
      return state;
    }
  }

  // If the row has no policy target (weight 0), writes a uniform policy over the legal actions, so
  // that the cross entropy is finite and its product with the weight is exactly 0.
  void fill_policy(const RowSegment& segment, uint32_t ply, const State& state, int symmetry,
                   size_t at, const BatchView& out, uint16_t* scratch) const {
    const size_t num_actions = static_cast<size_t>(game_.num_actions());
    uint8_t* legal = out.legal + at * num_actions;
    float* policy = out.policy + at * num_actions;
    std::fill_n(legal, num_actions, uint8_t{0});
    std::fill_n(policy, num_actions, 0.0f);
    const uint32_t first = segment.first_entry[ply];
    const uint32_t last = segment.first_entry[ply + 1];
    const int num_legal = game_.legal_actions(state, scratch);
    const float even = first == last ? 1.0f / static_cast<float>(num_legal) : 0.0f;
    const uint16_t* const images = game_.images(state, symmetry);
    for (int i = 0; i < num_legal; ++i) {
      const int action = images[scratch[i]];
      legal[action] = 1;
      policy[action] = even;
    }
    add_policy(segment, ply, images, policy);
  }

  // Adds the policy target of `ply` to `policy`. Does nothing if `ply` has no policy target.
  static void add_policy(const RowSegment& segment, uint32_t ply, const uint16_t* images,
                         float* policy) {
    const uint32_t first = segment.first_entry[ply];
    const uint32_t last = segment.first_entry[ply + 1];
    uint64_t total = 0;
    for (uint32_t i = first; i < last; ++i) total += segment.policy_mass[i];
    for (uint32_t i = first; i < last; ++i) {
      policy[images[segment.policy_action[i]]] +=
          static_cast<float>(segment.policy_mass[i]) / static_cast<float>(total);
    }
  }

  G game_;
};

}  // namespace tengen
