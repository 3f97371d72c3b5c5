#pragma once
// Assertions for the native tests (core/**/*_test.cc), also enabled in release builds.

#include <cstdio>
#include <cstdlib>

#include "base/error.h"

// If `condition` is false, prints its text and location, and ends the test program.
#define TENGEN_CHECK(condition)                                                      \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

namespace tengen {

// Returns whether `f()` throws an Error.
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
