#include "records/game_record.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "records/little_endian.h"

namespace tengen {
namespace {

constexpr uint8_t kRecordVersion = 3;
constexpr uint8_t kVersionWithoutLeads = 2;
constexpr size_t kMaxLength = std::numeric_limits<uint16_t>::max();
constexpr size_t kMaxName = std::numeric_limits<uint8_t>::max();

void check_ply(const PlyRecord& ply, bool is_finished) {
  check(std::abs(ply.root_value) <= 1.0f, "root_value", ply.root_value,
        "must lie in [-1, 1]; record the value to play after the search");
  check(ply.policy_weight >= 0.0f && std::isfinite(ply.policy_weight), "policy_weight",
        ply.policy_weight, "must be finite and not negative; use 0 for no target");
  check(ply.value_weight >= 0.0f && std::isfinite(ply.value_weight), "value_weight",
        ply.value_weight, "must be finite and not negative; use 0 for no target");
  check(ply.policy.size() <= kMaxLength, "policy", ply.policy.size(),
        "must have at most 65535 entries; drop the smallest");
  check(!is_finished || ply.policy.empty() == (ply.policy_weight == 0.0f), "policy",
        std::to_string(ply.policy.size()) + " entries",
        "must be empty exactly where policy_weight is 0; set both or neither");
  for (const auto& [action, weight] : ply.policy) {
    check(weight > 0, "policy weight", "0 for action " + std::to_string(action),
          "must be above 0; leave the action out");
  }
}

void check_switches(const GameRecord& record) {
  int before = -1;
  for (const ModelSwitch& one : record.switches) {
    check(one.ply > before && one.ply <= record.plies.size(), "switch", one.ply,
          "must be a ply of the game, after the previous switch; record them in order");
    before = one.ply;
  }
}

std::string encode(const GameRecord& record, bool is_finished) {
  check(record.opening.size() == record.num_opening_plies, "num_opening_plies",
        record.num_opening_plies, "must be the size of opening; set both");
  check(record.plies.size() <= kMaxLength, "plies", record.plies.size(),
        "must be at most 65535; end the game earlier");
  check(record.variant.size() <= kMaxName, "variant", record.variant,
        "must have at most 255 bytes; shorten it");
  check_switches(record);
  std::string bytes;
  ByteWriter out(&bytes);
  out.u8(kRecordVersion);
  out.u8(static_cast<uint8_t>(record.outcome));
  out.u32(record.generation);
  out.u32(record.game_index);
  out.u32(record.model);
  out.u8(static_cast<uint8_t>(record.variant.size()));
  for (const char byte : record.variant) out.u8(static_cast<uint8_t>(byte));
  out.u16(record.num_opening_plies);
  out.u16(static_cast<uint16_t>(record.plies.size()));
  out.u16(static_cast<uint16_t>(record.switches.size()));
  for (const ModelSwitch& one : record.switches) {
    out.u16(one.ply);
    out.u32(one.model);
  }
  for (const uint16_t action : record.opening) out.u16(action);
  for (const PlyRecord& ply : record.plies) {
    check_ply(ply, is_finished);
    out.u16(ply.action);
    out.f32(ply.root_value);
    out.f32(ply.policy_weight);
    out.f32(ply.value_weight);
    out.u32(ply.num_simulations);
    out.u16(static_cast<uint16_t>(ply.lead));
    out.u16(static_cast<uint16_t>(ply.policy.size()));
    for (const auto& [action, weight] : ply.policy) {
      out.u16(action);
      out.u16(weight);
    }
  }
  return bytes;
}

GameRecord decode(std::string_view bytes, bool is_finished) {
  ByteReader in(bytes, "game record");
  const uint8_t version = in.u8();
  check(version == kRecordVersion || version == kVersionWithoutLeads, "game record version",
        version, "is not one that this build reads (2 and 3); use the release that wrote it");
  GameRecord record;
  const uint8_t outcome = in.u8();
  check(is_finished ? outcome >= 1 && outcome <= 3 : outcome == 0, "outcome", outcome,
        is_finished ? "must be 1, 2 or 3; the bytes are damaged"
                    : "must be 0; the bytes are damaged");
  record.outcome = static_cast<Outcome>(outcome);
  record.generation = in.u32();
  record.game_index = in.u32();
  record.model = in.u32();
  const size_t num_variant_bytes = in.u8();
  for (size_t i = 0; i < num_variant_bytes; ++i) {
    record.variant.push_back(static_cast<char>(in.u8()));
  }
  record.num_opening_plies = in.u16();
  const size_t num_plies = in.u16();
  record.switches.resize(in.u16());
  for (ModelSwitch& one : record.switches) {
    one.ply = in.u16();
    one.model = in.u32();
  }
  record.opening.reserve(record.num_opening_plies);
  for (int i = 0; i < record.num_opening_plies; ++i) record.opening.push_back(in.u16());
  record.plies.resize(num_plies);
  for (PlyRecord& ply : record.plies) {
    ply.action = in.u16();
    ply.root_value = in.f32();
    ply.policy_weight = in.f32();
    ply.value_weight = in.f32();
    ply.num_simulations = in.u32();
    if (version != kVersionWithoutLeads) ply.lead = static_cast<int16_t>(in.u16());
    const size_t num_entries = in.u16();
    ply.policy.reserve(num_entries);
    for (size_t i = 0; i < num_entries; ++i) {
      const uint16_t action = in.u16();
      ply.policy.emplace_back(action, in.u16());
    }
    check_ply(ply, is_finished);
  }
  check_switches(record);
  check(in.num_left() == 0, "game record", std::to_string(bytes.size()) + " bytes",
        "has bytes after its end; the bytes are damaged");
  return record;
}

}  // namespace

std::string encode(const GameRecord& record) {
  check(record.outcome != Outcome::kOngoing && record.outcome <= Outcome::kDraw, "outcome",
        static_cast<int>(record.outcome), "must be decided; record finished games only");
  return encode(record, true);
}

GameRecord decode(std::string_view bytes) { return decode(bytes, true); }

std::string encode_unfinished(const GameRecord& record) {
  check(record.outcome == Outcome::kOngoing, "outcome", static_cast<int>(record.outcome),
        "must be undecided; encode finished games as such");
  return encode(record, false);
}

GameRecord decode_unfinished(std::string_view bytes) { return decode(bytes, false); }

}  // namespace tengen
