// OneDnnCounter, which counts the calls of oneDNN that a steady state must not make. Linking this
// intercepts the engine's calls of the library.
#pragma once

#include <cstdint>

namespace attendant::test_support {

// Counts from its construction to its destruction, on all threads. There may be one at a time. It
// does not see what oneDNN does inside a product.
class OneDnnCounter {
 public:
  OneDnnCounter();
  ~OneDnnCounter();

  int64_t primitives_created() const;
  int64_t reorders_run() const;
  int64_t products_run() const;  // shows that the counting works
};

}  // namespace attendant::test_support
