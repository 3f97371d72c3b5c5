#include "games/external/external_game.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace tengen {
namespace {

// Returns the index of `action` among the legal actions, or their number if `action` is illegal.
size_t place_of(const PositionFacts& facts, int action) {
  const auto found = std::lower_bound(facts.legal.begin(), facts.legal.end(), action);
  const auto place = static_cast<size_t>(found - facts.legal.begin());
  return found != facts.legal.end() && *found == action ? place : facts.legal.size();
}

// Returns the pointer to the position after `action`, which is null while that position is unknown.
std::shared_ptr<ExternalPosition>& child_of(ExternalPosition& position, int action) {
  const size_t place = place_of(position.facts, action);
  if (place == position.facts.legal.size()) {
    throw Error("action (" + std::to_string(action) + ") must be legal at ply " +
                std::to_string(position.ply) + "; choose one of the legal actions");
  }
  if (position.children.empty()) position.children.resize(position.facts.legal.size());
  return position.children[place];
}

size_t num_bytes(const PositionFacts& facts) {
  return sizeof(ExternalPosition) + facts.planes.size() * sizeof(float) +
         (facts.legal.size() + facts.considered.size()) * sizeof(uint16_t);
}

}  // namespace

Key128 planes_key(const float* planes, size_t num_values) {
  Key128 key = combine({}, num_values);
  for (size_t i = 0; i < num_values; i += 2) {
    uint64_t word = 0;
    std::memcpy(&word, planes + i, std::min<size_t>(2, num_values - i) * sizeof(float));
    key = combine(key, word);
  }
  return key;
}

int32_t PositionIds::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return next_++;
  const int32_t id = free_.back();
  free_.pop_back();
  return id;
}

void PositionIds::give_back(int32_t id) {
  if (id <= kInitial) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(id);
}

// Destroys the descendants in a loop, because recursion would be as deep as the game is long.
ExternalPosition::~ExternalPosition() {
  auto pending = std::move(children);
  while (!pending.empty()) {
    const std::shared_ptr<ExternalPosition> last = std::move(pending.back());
    pending.pop_back();
    if (last == nullptr || last.use_count() > 1) continue;
    std::move(last->children.begin(), last->children.end(), std::back_inserter(pending));
    last->children.clear();
  }
  ids->give_back(id);
}

ExternalGame::ExternalGame(std::shared_ptr<StateSource> source)
    : source_(std::move(source)),
      rules_(&source_->rules()),
      ids_(std::make_shared<PositionIds>()),
      kept_(std::make_shared<Kept>()) {
  initial_ = make_position(PositionIds::kInitial, 0, source_->replay({}, PositionIds::kInitial));
}

std::shared_ptr<ExternalPosition> ExternalGame::make_position(int32_t id, size_t ply,
                                                              PositionFacts facts) const {
  auto position = std::make_shared<ExternalPosition>(ids_, id);
  position->ply = static_cast<int>(ply);
  position->key = planes_key(facts.planes.data(), facts.planes.size());
  position->facts = std::move(facts);
  return position;
}

ExternalGame::State ExternalGame::initial_state() const {
  return {make_position(initial_->id, 0, initial_->facts)};
}

int ExternalGame::legal_actions(const State& state, uint16_t* actions) const {
  const std::vector<uint16_t>& legal = state.position->facts.legal;
  std::copy(legal.begin(), legal.end(), actions);
  return static_cast<int>(legal.size());
}

Decisive ExternalGame::decisive_actions(const State& state, uint16_t* actions) const {
  const PositionFacts& facts = state.position->facts;
  std::copy(facts.considered.begin(), facts.considered.end(), actions);
  return facts.decisive;
}

bool ExternalGame::is_legal(const State& state, int action) const {
  return place_of(state.position->facts, action) < state.position->facts.legal.size();
}

bool ExternalGame::is_known(const State& state, int action) const {
  return child_of(*state.position, action) != nullptr;
}

void ExternalGame::apply(State& state, int action) const {
  if (!is_known(state, action)) {
    const Move move{state, static_cast<uint16_t>(action)};
    resolve({&move, 1});
  }
  // Copies the pointer, because the assignment may free the parent position that owns the original.
  std::shared_ptr<ExternalPosition> child = child_of(*state.position, action);
  state.position = std::move(child);
}

void ExternalGame::resolve(std::span<const Move> moves) const {
  std::vector<ExternalMove> asked;
  std::vector<std::shared_ptr<ExternalPosition>> made;
  for (const Move& move : moves) {
    if (move.state.position->id == PositionIds::kNone) {
      throw Error("action (" + std::to_string(move.action) +
                  ") needs a position reached by moves; start with initial_state()");
    }
    // Wraps the ID in its position now, so that the ID is freed if the source throws.
    made.push_back(std::make_shared<ExternalPosition>(ids_, ids_->take()));
    made.back()->ply = move.state.position->ply + 1;
    asked.push_back({move.state.position->id, move.action, made.back()->id});
  }
  std::vector<PositionFacts> facts(moves.size());
  source_->expand(asked, facts);
  for (size_t i = 0; i < moves.size(); ++i) {
    made[i]->key = planes_key(facts[i].planes.data(), facts[i].planes.size());
    made[i]->facts = std::move(facts[i]);
    child_of(*moves[i].state.position, moves[i].action) = std::move(made[i]);
  }
}

void ExternalGame::encode(const State& state, int symmetry, float* planes) const {
  const std::vector<float>& from = state.position->facts.planes;
  const uint32_t* origin =
      rules_->plane_origin.data() + static_cast<size_t>(symmetry) * from.size();
  for (size_t i = 0; i < from.size(); ++i) planes[i] = from[origin[i]];
}

ExternalGame::State ExternalGame::state_after(std::span<const uint16_t> actions) const {
  Key128 key = combine({}, actions.size());
  for (const uint16_t action : actions) key = combine(key, action);
  {
    const std::lock_guard lock(kept_->mutex);
    for (const auto* half : {&kept_->newer, &kept_->older}) {
      const auto found = half->find(key);
      if (found == half->end()) continue;
      const State state = found->second;
      kept_->newer.emplace(key, state);
      return state;
    }
  }
  // Calls the source unlocked: it may wait for a lock whose holder waits for this mutex.
  const State state{make_position(PositionIds::kNone, actions.size(),
                                  source_->replay(actions, PositionIds::kNone))};
  const std::lock_guard lock(kept_->mutex);
  if (2 * (kept_->newer.size() + 1) * num_bytes(state.position->facts) > kMaxKeptBytes) {
    kept_->older = std::exchange(kept_->newer, {});
  }
  kept_->newer.emplace(key, state);
  return state;
}

}  // namespace tengen
