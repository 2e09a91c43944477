// Tables of names with lookup in both directions.
#pragma once

#include <iterator>
#include <optional>

#include "absl/strings/string_view.h"

namespace attendant {

// A row of a table. A table is an array, span or vector of rows.
template <typename T>
struct Named {
  const char* name;
  T value;
};

// Returns "unknown" if no row has this value.
template <typename Table, typename T>
constexpr const char* NameIn(const Table& table, const T& value) {
  for (const auto& row : table) {
    if (row.value == value) return row.name;
  }
  return "unknown";
}

// Returns nothing if no row has this name.
template <typename Table>
constexpr auto ValueIn(const Table& table, absl::string_view name)
    -> std::optional<decltype(std::begin(table)->value)> {
  for (const auto& row : table) {
    if (name == row.name) return row.value;
  }
  return std::nullopt;
}

}  // namespace attendant
