#pragma once
// What the native tests (core/**/*_test.cc) assert with. Kept on in release builds.

#include <cstdio>
#include <cstdlib>

#include "base/error.h"

// Ends the test program with the place and text of a condition that does not hold.
#define TENGEN_CHECK(condition)                                                      \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

namespace tengen {

// Whether calling `f` throws an Error.
template <class F>
bool throws(F&& f) {
  try {
    f();
  } catch (const Error&) {
    return true;
  }
  return false;
}

}  // namespace tengen
