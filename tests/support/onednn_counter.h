// Counts what a steady state must not ask of oneDNN; linking this stands between the engine and the
// library.
#pragma once

#include <cstdint>

namespace attendant::testing {

// Counts from its construction to its destruction, on all threads. One at a time. What oneDNN does
// inside of a product that it runs is not seen.
class OneDnnCounter {
 public:
  OneDnnCounter();
  ~OneDnnCounter();

  int64_t primitives_created() const;
  int64_t reorders_run() const;
  int64_t products_run() const;  // to see that the counting works
};

}  // namespace attendant::testing
