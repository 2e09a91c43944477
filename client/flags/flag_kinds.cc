#include "client/flags/flag_kinds.h"

#include <cmath>

namespace attendant::client {
namespace {

std::optional<absl::Duration> ParseDuration(const std::string& text) {
  double seconds = 0;
  absl::Duration duration;
  if (absl::SimpleAtod(text, &seconds) && !std::isnan(seconds)) {
    duration = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &duration)) {
    return std::nullopt;
  }
  if (duration < absl::ZeroDuration()) return std::nullopt;
  return duration;
}

template <typename Target>
FlagKind MakeDurationKind(Target& target, absl::Duration initial) {
  return {.expected = "a duration of at least 0, such as 250ms or 30s",
          .initial = absl::FormatDuration(initial),
          .read = [&target](const std::string& text) {
            const std::optional<absl::Duration> duration = ParseDuration(text);
            if (duration) target = *duration;
            return duration.has_value();
          }};
}

}  // namespace

FlagKind TextKind(std::string& target, const std::string& initial) {
  return {.initial = target.empty() ? initial : target, .read = [&target](const std::string& text) {
            target = text;
            return true;
          }};
}

FlagKind TextsKind(std::vector<std::string>& target) {
  return {.takes = FlagKind::Takes::kRepeated, .read = [&target](const std::string& text) {
            target.push_back(text);
            return true;
          }};
}

FlagKind DurationKind(absl::Duration& target) { return MakeDurationKind(target, target); }

FlagKind DurationKind(std::optional<absl::Duration>& target, absl::Duration initial) {
  return MakeDurationKind(target, initial);
}

FlagKind RealKind(double& target, double least, double most) {
  const std::string bounds = absl::StrCat(least, "..", most);
  return {.expected = absl::StrCat("a number of ", bounds),
          .bounds = bounds,
          .initial = absl::StrCat(target),
          .read = [&target, least, most](const std::string& text) {
            double value = 0;
            if (!absl::SimpleAtod(text, &value) || !(value >= least && value <= most)) return false;
            target = value;
            return true;
          }};
}

}  // namespace attendant::client
