// Macros that propagate errors to the caller, as in other Google-style code bases.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the function unless the absl::Status `expression` is OK.
#define RETURN_IF_ERROR(expression)                              \
  if (absl::Status status_here = (expression); status_here.ok()) \
    ;                                                            \
  else                                                           \
    return status_here

// Evaluates the absl::StatusOr `expression`. Returns its status from the function if that is not
// OK. Otherwise assigns its value to `target`, which may declare a variable:
//   ASSIGN_OR_RETURN(const Header header, ReadHeader(file));
// If the type contains commas, use `auto`.
#define ASSIGN_OR_RETURN(target, ...) \
  ASSIGN_OR_RETURN_AS(STATUS_MACROS_JOIN(status_or_, __LINE__), target, __VA_ARGS__)

#define STATUS_MACROS_JOIN(a, b) STATUS_MACROS_JOIN_AGAIN(a, b)
#define STATUS_MACROS_JOIN_AGAIN(a, b) a##b
#define ASSIGN_OR_RETURN_AS(result, target, ...)       \
  auto result = (__VA_ARGS__);                         \
  if (!result.ok()) return std::move(result).status(); \
  target = *std::move(result)
