// An overload of gmock's ElementsAre for elements of one type, which most lists have. gmock's own compiles a tuple of matchers for
// each length of a list; this one makes an array of them, which matches and explains the same. Part of the precompiled headers of
// tests: no file includes it, and without them gmock's is used.
#pragma once

#include <gmock/gmock.h>

#include <initializer_list>
#include <type_traits>

namespace testing {

template <typename First, typename... Rest>
  requires(std::is_same_v<std::decay_t<const First&>, std::decay_t<const Rest&>> && ...)
auto ElementsAre(const First& first, const Rest&... rest) {
  return ElementsAreArray(std::initializer_list<std::decay_t<const First&>>{first, rest...});
}

}  // namespace testing
