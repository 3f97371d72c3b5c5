// Records, journals, columns and rows. Arrays are C-contiguous numpy arrays on the CPU; calls that
// use the disk or derive rows release the GIL.

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "base/crc32c.h"
#include "python/arrays.h"
#include "python/bindings.h"
#include "python/gil.h"
#include "python/python_source.h"
#include "records/fault.h"
#include "records/game_columns.h"
#include "records/game_frames.h"
#include "records/game_rows.h"
#include "records/journal.h"
#include "records/row_draw.h"

namespace nb = nanobind;

namespace tengen {
namespace {

std::string_view view_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

nb::dict to_dict(GameColumns columns) {
  nb::dict out;
  out["game_index"] = to_numpy(std::move(columns.game_index));
  out["outcome"] = to_numpy(std::move(columns.outcome));
  out["model"] = to_numpy(std::move(columns.model));
  out["num_variant_bytes"] = to_numpy(std::move(columns.num_variant_bytes));
  out["variant"] = to_numpy(std::move(columns.variant));
  out["num_opening_plies"] = to_numpy(std::move(columns.num_opening_plies));
  out["num_plies"] = to_numpy(std::move(columns.num_plies));
  out["num_switches"] = to_numpy(std::move(columns.num_switches));
  out["switch_ply"] = to_numpy(std::move(columns.switch_ply));
  out["switch_model"] = to_numpy(std::move(columns.switch_model));
  out["opening"] = to_numpy(std::move(columns.opening));
  out["action"] = to_numpy(std::move(columns.action));
  out["root_value"] = to_numpy(std::move(columns.root_value));
  out["policy_weight"] = to_numpy(std::move(columns.policy_weight));
  out["value_weight"] = to_numpy(std::move(columns.value_weight));
  out["num_simulations"] = to_numpy(std::move(columns.num_simulations));
  out["lead"] = to_numpy(std::move(columns.lead));
  out["num_policy_entries"] = to_numpy(std::move(columns.num_policy_entries));
  out["policy_action"] = to_numpy(std::move(columns.policy_action));
  out["policy_mass"] = to_numpy(std::move(columns.policy_mass));
  return out;
}

std::pair<NumpyVector<int64_t>, NumpyVector<uint8_t>> to_arrays(RowDraw draw) {
  return {to_numpy(std::move(draw.rows)), to_numpy(std::move(draw.symmetries))};
}

// Derives rows; returns new arrays by name. AuxiliaryView lists those of `has_auxiliary`.
nb::dict derive(const GameRows& self, const Column<int64_t>& rows,
                const Column<uint8_t>& symmetries, bool has_auxiliary) {
  nb::dict columns;
  BatchView out{};
  const size_t num_rows = rows.size();
  const auto add = [&]<class T, class... Lengths>(T*& to, const char* name, Lengths... lengths) {
    auto array = make_array<T>(std::array{num_rows, static_cast<size_t>(lengths)...});
    to = array.data();
    columns[name] = nb::cast(std::move(array));
  };
  add(out.planes, "planes", self.num_planes(), self.height(), self.width());
  add(out.legal, "legal", self.num_actions());
  add(out.policy, "policy", self.num_actions());
  add(out.policy_weight, "policy_weight");
  add(out.outcome, "outcome", 3);
  add(out.search_value, "search_value");
  add(out.value_weight, "value_weight");
  AuxiliaryView& auxiliary = out.auxiliary;
  if (has_auxiliary) {
    add(auxiliary.reply, "reply", self.num_actions());
    add(auxiliary.reply_weight, "reply_weight");
    add(auxiliary.horizons, "horizons", kHorizons.size());
  }
  if (has_auxiliary && self.max_score() > 0) {
    add(auxiliary.ownership, "ownership", self.height(), self.width());
    add(auxiliary.score, "score");
    add(auxiliary.final_weight, "final_weight");
    add(auxiliary.lead, "lead");
    add(auxiliary.lead_weight, "lead_weight");
  }
  const GilReleased release;
  self.fill(span_of(rows), span_of(symmetries), out);
  return columns;
}

void bind_game_records(nb::module_& m) {
  nb::class_<PlyRecord>(m, "PlyRecord", "One searched ply; fields as in records/game_record.h.")
      .def(nb::init<>())
      .def_rw("action", &PlyRecord::action)
      .def_rw("root_value", &PlyRecord::root_value)
      .def_rw("policy_weight", &PlyRecord::policy_weight)
      .def_rw("value_weight", &PlyRecord::value_weight)
      .def_rw("num_simulations", &PlyRecord::num_simulations)
      .def_rw("policy", &PlyRecord::policy)
      .def_rw("lead", &PlyRecord::lead)
      .def(
          "__eq__", [](const PlyRecord& a, const PlyRecord& b) { return a == b; },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"));
  nb::class_<GameRecord>(m, "GameRecord",
                         "One finished game. `outcome`: 1 first player wins, 2 second, 3 draw.")
      .def(nb::init<>())
      .def_rw("generation", &GameRecord::generation)
      .def_rw("game_index", &GameRecord::game_index)
      .def_rw("model", &GameRecord::model)
      .def_rw("variant", &GameRecord::variant)
      .def_prop_rw(
          "outcome", [](const GameRecord& r) { return static_cast<int>(r.outcome); },
          [](GameRecord& r, uint8_t outcome) { r.outcome = static_cast<Outcome>(outcome); })
      .def_prop_rw(
          "opening", [](const GameRecord& r) { return r.opening; },
          [](GameRecord& r, std::vector<uint16_t> opening) {
            r.num_opening_plies = static_cast<uint16_t>(opening.size());
            r.opening = std::move(opening);
          })
      .def_rw("plies", &GameRecord::plies)
      .def_prop_rw(
          "switches",
          [](const GameRecord& r) {
            std::vector<std::pair<uint16_t, uint32_t>> pairs;
            for (const ModelSwitch& one : r.switches) pairs.emplace_back(one.ply, one.model);
            return pairs;
          },
          [](GameRecord& r, const std::vector<std::pair<uint16_t, uint32_t>>& pairs) {
            r.switches.clear();
            for (const auto& [ply, model] : pairs) r.switches.push_back({ply, model});
          },
          "(ply, model) pairs: each model plays from its searched ply on.")
      .def(
          "__eq__", [](const GameRecord& a, const GameRecord& b) { return a == b; },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"));
  m.def("encode_game", [](const GameRecord& record) { return bytes_of(encode(record)); });
  m.def("decode_game", [](const nb::bytes& bytes) { return decode(view_of(bytes)); });
  m.def(
      "merge_games",
      [](const std::vector<nb::bytes>& frames, uint32_t generation) {
        std::vector<std::string_view> views;
        for (const nb::bytes& frame : frames) views.push_back(view_of(frame));
        GameColumns columns;
        {
          GilReleased release;
          columns = merge_games(views, generation);
        }
        return to_dict(std::move(columns));
      },
      nb::arg("frames"), nb::arg("generation"),
      nb::sig("def merge_games(frames: collections.abc.Sequence[bytes], generation: int)"
              " -> dict[str, numpy.typing.NDArray[typing.Any]]"));
}

void bind_journal(nb::module_& m) {
  nb::class_<Journal>(m, "Journal", "An open segment; see records/journal.h.")
      .def(nb::init<const std::string&, const std::string&, uint64_t>(), nb::arg("path"),
           nb::arg("meta"), nb::arg("max_queue_bytes") = uint64_t{64} << 20, WithoutGil())
      .def(
          "append",
          [](Journal& journal, const nb::bytes& payload) {
            std::string copied(view_of(payload));
            GilReleased release;
            journal.append(std::move(copied));
          },
          nb::arg("payload"))
      .def("flush", &Journal::flush, WithoutGil())
      .def("close", &Journal::close, WithoutGil())
      .def_prop_ro("num_appended", &Journal::num_appended)
      .def_prop_ro("num_durable", &Journal::num_durable)
      .def_prop_ro("path", &Journal::path);
  nb::class_<GameSink>(m, "GameSink", "The destination of self-play's finished games.")
      .def("put", &GameSink::put, nb::arg("record"), WithoutGil());
  nb::class_<JournalSink, GameSink>(m, "JournalSink", "Stores games in a journal.")
      .def(nb::init<Journal*>(), nb::arg("journal"), nb::keep_alive<1, 2>());
  nb::class_<GameFrames, GameSink>(m, "GameFrames", "Collects encoded games in memory.")
      .def(nb::init<>())
      .def(
          "take", [](GameFrames& self) { return bytes_of(self.take()); },
          "Removes and returns the encoded games, in order of completion.");
  m.def(
      "read_journal",
      [](const std::string& path) {
        JournalContents contents;
        {
          GilReleased release;
          contents = read_journal(path);
        }
        std::vector<std::tuple<uint64_t, uint64_t, bool>> gaps;
        for (const JournalGap& gap : contents.gaps) {
          gaps.emplace_back(gap.offset, gap.num_bytes, gap.is_tail);
        }
        return std::tuple(contents.meta, bytes_of(contents.frames), gaps);
      },
      nb::arg("path"));
}

void bind_rows(nb::module_& m) {
  nb::class_<GameRows>(m, "GameRows", "Training rows, stored as games; see records/game_rows.h.")
      .def(nb::new_([](const nb::object& game) {
             if (nb::isinstance<nb::str>(game)) return make_game_rows(nb::cast<std::string>(game));
             return make_game_rows(external_game(game));
           }),
           nb::arg("game"))
      .def_prop_ro("num_planes", &GameRows::num_planes)
      .def_prop_ro("height", &GameRows::height)
      .def_prop_ro("width", &GameRows::width)
      .def_prop_ro("num_actions", &GameRows::num_actions)
      .def_prop_ro("num_symmetries", &GameRows::num_symmetries)
      .def_prop_ro("max_score", &GameRows::max_score)
      .def_prop_ro("num_rows", &GameRows::num_rows)
      .def_prop_ro("first_row", &GameRows::first_row)
      .def_prop_ro("num_bytes", &GameRows::num_bytes)
      .def("skip_rows", &GameRows::skip_rows, nb::arg("num_rows"))
      .def("drop_before", &GameRows::drop_before, nb::arg("row"))
      .def(
          "add_segment",
          [](GameRows& rows, const nb::kwargs& columns) {
            const SegmentColumns segment(columns);
            const GilReleased release;
            return rows.add_segment(segment.view());
          },
          nb::sig("def add_segment(self, **columns: numpy.typing.NDArray[typing.Any]) -> int"))
      .def("derive", &derive, nb::arg("rows"), nb::arg("symmetries"), nb::arg("has_auxiliary"),
           nb::sig("def derive(self, rows: numpy.typing.NDArray[numpy.int64],"
                   " symmetries: numpy.typing.NDArray[numpy.uint8], has_auxiliary: bool)"
                   " -> dict[str, numpy.typing.NDArray[typing.Any]]"));
  m.attr("NO_LEAD") = kNoLead;
  m.attr("LEADS_PER_POINT") = kLeadsPerPoint;
  m.attr("NUM_HORIZONS") = static_cast<int>(kHorizons.size());
  m.def(
      "draw_rows",
      [](uint64_t seed, uint64_t step, size_t num_rows, uint64_t first_row, uint32_t size,
         uint32_t num_symmetries) {
        return to_arrays(draw_rows(seed, step, num_rows, {first_row, size, num_symmetries}));
      },
      nb::kw_only(), nb::arg("seed"), nb::arg("step"), nb::arg("num_rows"), nb::arg("first_row"),
      nb::arg("size"), nb::arg("num_symmetries"));
  m.def(
      "draw_rows_of_pass",
      [](uint64_t seed, uint64_t number, uint32_t offset, size_t num_rows, uint64_t first_row,
         uint32_t size, uint32_t num_symmetries) {
        return to_arrays(
            draw_rows_of_pass(seed, number, offset, num_rows, {first_row, size, num_symmetries}));
      },
      nb::kw_only(), nb::arg("seed"), nb::arg("number"), nb::arg("offset"), nb::arg("num_rows"),
      nb::arg("first_row"), nb::arg("size"), nb::arg("num_symmetries"));
}

}  // namespace

void bind_records(nb::module_& m) {
  nb::exception<SchemaError>(m, "SchemaError", m.attr("CoreError").ptr());
  bind_game_records(m);
  bind_journal(m);
  bind_rows(m);
  m.def(
      "crc32c", [](const nb::bytes& bytes, uint32_t crc) { return crc32c(view_of(bytes), crc); },
      nb::arg("bytes"), nb::arg("crc") = 0);
  m.def(
      "crc32c_portable", [](const nb::bytes& bytes) { return crc32c_portable(view_of(bytes)); },
      nb::arg("bytes"));
  nb::enum_<FaultAction>(m, "FaultAction")
      .value("NONE", FaultAction::kNone)
      .value("KILL", FaultAction::kKill)
      .value("DISK_FULL", FaultAction::kDiskFull);
  m.def("set_fault", &set_fault, nb::arg("point"), nb::arg("action"), nb::arg("num_passes") = 0);
}

}  // namespace tengen
