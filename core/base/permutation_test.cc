#include "base/permutation.h"

#include <algorithm>
#include <vector>

#include "base/testing.h"

using namespace tengen;

namespace {

std::vector<uint32_t> order(uint64_t key, uint32_t size) {
  const Permutation permutation(key, size);
  std::vector<uint32_t> elements;
  for (uint32_t place = 0; place < size; ++place) elements.push_back(permutation(place));
  return elements;
}

void check_bijections() {
  for (uint32_t size = 1; size < 300; ++size) {
    std::vector<uint32_t> elements = order(size * 7, size);
    std::sort(elements.begin(), elements.end());
    for (uint32_t i = 0; i < size; ++i) TENGEN_CHECK(elements[i] == i);
  }
  TENGEN_CHECK(order(1, 100) == order(1, 100));
  TENGEN_CHECK(order(1, 100) != order(2, 100));
}

// For the maximum size, elements are in range, and consecutive indices are spread over both halves.
void check_large() {
  const uint32_t size = 0xffffffffu;
  const Permutation permutation(3, size);
  uint32_t upper_half = 0;
  for (uint32_t place = 0; place < 1000; ++place) {
    TENGEN_CHECK(permutation(place) < size);
    upper_half += permutation(place) > size / 2;
  }
  TENGEN_CHECK(upper_half > 400 && upper_half < 600);
}

// The element at an index and its distance to the next element are uniform over keys. Chi-square
// with 49 degrees of freedom exceeds 100 only once in 50,000 tests.
void check_even() {
  const uint32_t size = 50;
  const int num_keys = 10000;
  for (const uint32_t place : {0u, 1u, 49u}) {
    std::vector<int> elements(size), distances(size);
    for (int key = 0; key < num_keys; ++key) {
      const Permutation permutation(mix64(static_cast<uint64_t>(key)), size);
      const uint32_t here = permutation(place);
      const uint32_t next = permutation((place + 1) % size);
      ++elements[here];
      ++distances[(next + size - here) % size];
    }
    double elements_chi = 0;
    double distances_chi = 0;
    for (uint32_t i = 0; i < size; ++i) {
      const double expected = num_keys / 50.0;
      elements_chi += (elements[i] - expected) * (elements[i] - expected) / expected;
      if (i == 0) continue;
      const double others = num_keys / 49.0;
      distances_chi += (distances[i] - others) * (distances[i] - others) / others;
    }
    TENGEN_CHECK(elements_chi < 100);
    TENGEN_CHECK(distances[0] == 0);
    TENGEN_CHECK(distances_chi < 100);
  }
}

}  // namespace

int main() {
  check_bijections();
  check_large();
  check_even();
  return 0;
}
