#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "fuzz/target.h"

namespace tengen::fuzz {

std::vector<Target> targets() {
  std::vector<Target> all;
  for (std::vector<Target> some : {record_targets(), store_file_targets(), store_wire_targets(),
                                   store_model_targets(), row_targets()}) {
    all.insert(all.end(), std::make_move_iterator(some.begin()),
               std::make_move_iterator(some.end()));
  }
  return all;
}

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fault: %s\n", what);
  std::abort();
}

}  // namespace tengen::fuzz
