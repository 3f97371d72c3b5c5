#include "games/go/area/area.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace tengen {
namespace {

constexpr size_t kMaxVital = 4;  // because all vital chains of a region touch one point

struct Region {
  uint16_t first;  // index of its first point in PassAlive::members_
  uint16_t end;
  std::array<uint16_t, kMaxVital> vital;  // heads of the chains with this vital region
  uint8_t num_vital;
  bool is_enclosed;  // whether only chains that may still be pass-alive enclose the region
};

// The pass-alive points of one side.
struct Kept {
  PointSet chains;
  PointSet regions;
};

// Finds the pass-alive points of one side. kMinigo: by the rules of minigo_pass_alive_areas().
template <bool kMinigo>
class PassAlive {
 public:
  PassAlive(const GoBoard& board, const GoState& state, uint8_t colour, bool may_suicide)
      : board_(board), state_(state), colour_(colour), may_suicide_(may_suicide) {}

  Kept find() {
    const PointSet& own = state_.stones[colour_];
    const PointSet empty = board_.empty_points(state_);
    const PointSet others = empty | state_.stones[colour_ ^ 1];
    // No region with a point of `far` is vital. Few regions remain, and in most positions none.
    const PointSet far = (may_suicide_ ? others : empty) - board_.beside(own);
    const PointSet hopeless = board_.reached(far, others);
    find_regions(others - hopeless);
    do {
      drop_regions<kMinigo>();
    } while (drop_chains());
    if (num_chains_ == 0) return {};
    find_regions(hopeless);
    drop_regions<false>();
    Kept kept;
    for_each_point(own, [&](int stone) {
      if (is_alive_[state_.points[static_cast<size_t>(stone)].head]) kept.chains.add(stone);
    });
    for (size_t i = 0; i < num_regions_; ++i) {
      if (!regions_[i].is_enclosed || !has_few_inner_points(regions_[i])) continue;
      for (const uint16_t point : points_of(regions_[i])) kept.regions.add(point);
    }
    return kept;
  }

 private:
  std::span<const uint16_t> points_of(const Region& region) const {
    return {members_.data() + region.first, members_.data() + region.end};
  }
  // Calls f(head of its chain) for every stone of this side that is adjacent to `point`.
  template <class F>
  void for_each_chain_beside(uint16_t point, F&& f) const {
    for (const uint16_t q : board_.neighbours(point)) {
      if (state_.points[q].colour == colour_) f(state_.points[q].head);
    }
  }

  // Splits `left` into regions and adds them, with the chains to which they are vital.
  void find_regions(PointSet left) {
    for (int start; (start = left.first()) >= 0;) {
      Region& region = regions_[num_regions_++];
      region.first = static_cast<uint16_t>(num_members_);
      left.remove(start);
      members_[num_members_++] = static_cast<uint16_t>(start);
      for (size_t m = region.first; m < num_members_; ++m) {
        for (const uint16_t q : board_.neighbours(members_[m])) {
          if (!left.has(q)) continue;
          left.remove(q);
          members_[num_members_++] = q;
        }
      }
      region.end = static_cast<uint16_t>(num_members_);
      region.is_enclosed = true;
      find_vital(region);
    }
  }

  // Finds the chains adjacent to every empty point of `region`; with suicide, to every point.
  void find_vital(Region& region) {
    region.num_vital = 0;
    bool is_first = true;
    for (const uint16_t point : points_of(region)) {
      if (state_.points[point].colour != kGoEmpty && !may_suicide_) continue;
      std::array<uint16_t, kMaxVital> heads;
      size_t num_heads = 0;
      for_each_chain_beside(point, [&](uint16_t head) {
        const auto end = heads.begin() + num_heads;
        const bool is_new = std::find(heads.begin(), end, head) == end;
        const bool counts = is_first || is_vital(region, head);
        if (is_new && counts) heads[num_heads++] = head;
      });
      region.vital = heads;
      region.num_vital = static_cast<uint8_t>(num_heads);
      is_first = false;
    }
    for (size_t v = 0; v < region.num_vital; ++v) {
      const uint16_t head = region.vital[v];
      if (!is_alive_[head]) chains_[num_chains_++] = head;
      is_alive_[head] = true;
    }
  }
  static bool is_vital(const Region& region, uint16_t head) {
    const auto end = region.vital.begin() + region.num_vital;
    return std::find(region.vital.begin(), end, head) != end;
  }

  // Drops the regions adjacent to a chain that is not alive. kAtLiberties: only the regions that
  // contain a liberty of the chain.
  template <bool kAtLiberties>
  void drop_regions() {
    for (size_t i = 0; i < num_regions_; ++i) {
      bool& is_enclosed = regions_[i].is_enclosed;
      for (const uint16_t point : points_of(regions_[i])) {
        if (!is_enclosed) break;
        if (kAtLiberties && state_.points[point].colour != kGoEmpty) continue;
        for_each_chain_beside(point, [&](uint16_t head) { is_enclosed &= is_alive_[head]; });
      }
    }
  }

  // Drops the chains with fewer than two vital regions; returns whether it dropped any.
  bool drop_chains() {
    for (size_t c = 0; c < num_chains_; ++c) num_vital_[chains_[c]] = 0;
    for (size_t i = 0; i < num_regions_; ++i) {
      if (!regions_[i].is_enclosed) continue;
      for (size_t v = 0; v < regions_[i].num_vital; ++v) ++num_vital_[regions_[i].vital[v]];
    }
    size_t num_kept = 0;
    for (size_t c = 0; c < num_chains_; ++c) {
      const uint16_t head = chains_[c];
      is_alive_[head] = num_vital_[head] >= 2;
      if (is_alive_[head]) chains_[num_kept++] = head;
    }
    const bool dropped = num_kept < num_chains_;
    num_chains_ = num_kept;
    return dropped;
  }

  // Whether at most one (kMinigo: empty) point of `region` has no adjacent stone of this side.
  bool has_few_inner_points(const Region& region) const {
    int num_inner = 0;
    for (const uint16_t point : points_of(region)) {
      if (kMinigo && state_.points[point].colour != kGoEmpty) continue;
      bool is_inner = true;
      for_each_chain_beside(point, [&](uint16_t) { is_inner = false; });
      num_inner += is_inner;
    }
    return num_inner <= 1;
  }

  const GoBoard& board_;
  const GoState& state_;
  const uint8_t colour_;
  const bool may_suicide_;
  size_t num_regions_ = 0;
  size_t num_members_ = 0;
  size_t num_chains_ = 0;
  std::array<Region, kGoMaxPoints> regions_;
  std::array<uint16_t, kGoMaxPoints> members_;    // the points of all regions, concatenated
  std::array<uint16_t, kGoMaxPoints> chains_;     // heads of the chains that may be alive
  std::array<uint16_t, kGoMaxPoints> num_vital_;  // number of vital regions, indexed by head
  std::array<bool, kGoMaxPoints>
      is_alive_{};  // by head, whether a chain is alive; final when drop_chains() returns false
};

using BothKept = std::array<Kept, 2>;  // the pass-alive points of both sides, indexed by side

// Returns the points by minigo's rules. A region that would belong to both sides is White's.
BothKept minigo_kept(const GoBoard& board, const GoState& state, bool may_suicide) {
  BothKept kept = {PassAlive<true>(board, state, kGoBlack, may_suicide).find(),
                   PassAlive<true>(board, state, kGoWhite, may_suicide).find()};
  kept[kGoBlack].regions = kept[kGoBlack].regions - kept[kGoWhite].regions;
  return kept;
}

// Returns area scoring if the points `owned` already have an owner and only `empty` points remain.
GoAreas area_of(const GoBoard& board, const GoAreas& owned, const PointSet& empty) {
  const PointSet black = board.reached(owned[kGoBlack], empty);
  const PointSet white = board.reached(owned[kGoWhite], empty);
  return {black - white, white - black};
}

}  // namespace

GoAreas area_of(const GoBoard& board, const GoState& state) {
  return area_of(board, state.stones, board.empty_points(state));
}

GoAreas pass_alive_areas(const GoBoard& board, const GoState& state, bool may_suicide) {
  const auto find = [&](uint8_t colour) {
    const Kept kept = PassAlive<false>(board, state, colour, may_suicide).find();
    return kept.chains | kept.regions;
  };
  return {find(kGoBlack), find(kGoWhite)};
}

GoAreas katago_area_of(const GoBoard& board, const GoState& state, bool may_suicide) {
  const GoAreas kept = pass_alive_areas(board, state, may_suicide);
  const GoAreas seen = area_of(board, state);
  return {(kept[kGoBlack] | seen[kGoBlack]) - kept[kGoWhite],
          kept[kGoWhite] | (seen[kGoWhite] - kept[kGoBlack])};
}

GoAreas minigo_pass_alive_areas(const GoBoard& board, const GoState& state, bool may_suicide) {
  const BothKept kept = minigo_kept(board, state, may_suicide);
  return {kept[kGoBlack].regions | (kept[kGoBlack].chains - kept[kGoWhite].regions),
          kept[kGoWhite].regions | (kept[kGoWhite].chains - kept[kGoBlack].regions)};
}

GoAreas minigo_area_of(const GoBoard& board, const GoState& state, bool may_suicide) {
  const BothKept kept = minigo_kept(board, state, may_suicide);
  const PointSet& black = kept[kGoBlack].regions;
  const PointSet& white = kept[kGoWhite].regions;
  const GoAreas owned = {black | (state.stones[kGoBlack] - white),
                         white | (state.stones[kGoWhite] - black)};
  return area_of(board, owned, board.empty_points(state) - (black | white));
}

}  // namespace tengen
