#include "games/go/rules/history.h"

#include "base/hash.h"
#include "base/testing.h"

using namespace tengen;

int main() {
  for (const int num_buckets : {1, 4, KeyHistory::kMaxBuckets}) {
    KeyHistory history(num_buckets);
    for (uint64_t i = 0; i < KeyHistory::kMaxKeys; ++i) {
      TENGEN_CHECK(!history.contains(mix64(i)));
      history.add(mix64(i));
      TENGEN_CHECK(history.contains(mix64(i)) && history.contains(mix64(i / 2)));
    }
  }
  // Copies are independent, and different keys in the same bucket do not affect each other.
  KeyHistory a(4);
  a.add(1);
  a.add(5);
  KeyHistory b = a;
  b.add(9);
  a.add(13);
  TENGEN_CHECK(a.contains(1) && a.contains(5) && !a.contains(9) && a.contains(13));
  TENGEN_CHECK(b.contains(1) && b.contains(5) && b.contains(9) && !b.contains(13));
  a = b;
  TENGEN_CHECK(a.contains(9) && !a.contains(13));
  a.clear();
  TENGEN_CHECK(!a.contains(1) && !a.contains(9));
  return 0;
}
