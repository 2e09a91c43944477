#include "client/load_report/saved_report.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/files/file_bytes.h"

namespace attendant::client {
namespace {

using Json = nlohmann::ordered_json;

struct Figure {
  const char* name;
  const char* pointer;  // where it stands in a step
};
constexpr Figure kFigures[] = {
    {"answered/s", "/requests_per_s"}, {"goodput/s", "/goodput/requests_per_s"},
    {"mean ms", "/latency_ms/mean"},   {"p50 ms", "/latency_ms/p50"},
    {"p99 ms", "/latency_ms/p99"},     {"compute ms", "/server_ms/compute"}};
// Members that the page reads in addition to the figures.
constexpr const char* kStepParts[] = {"load",         "missed",       "errors",     "ok",
                                      "tokens_per_s", "histogram_ms", "late_share", "batch",
                                      "seconds",      "server_ms"};

double Value(const Json& step, const Figure& figure) {
  return step.at(Json::json_pointer(figure.pointer)).get<double>();
}

std::string LoadName(const Json& step) {
  const Json& load = step.at("load");
  return load.contains("rate") ? absl::StrFormat("%.6g requests/s", load["rate"].get<double>())
                               : absl::StrCat(load.at("concurrency").get<int>(), " in flight");
}

double FoundRateOf(const Json& document) { return document.at("search").at("rate").get<double>(); }

std::vector<std::string> ObjectivesOf(const Json& document) {
  return document.at("search").at("objectives").get<std::vector<std::string>>();
}

// Returns the step number `nth` (from 0) among those with this load; null if there are fewer.
const Json* FindStep(const Json& document, const std::string& load, int nth) {
  for (const Json& step : document.at("steps")) {
    if (LoadName(step) == load && nth-- == 0) return &step;
  }
  return nullptr;
}

std::string ComparisonLine(const std::string& load, const std::string& figure, double from,
                           double to) {
  return absl::StrFormat("%-24s %-12s %12.3f %12.3f  %s\n", load, figure, from, to,
                         from > 0 ? absl::StrFormat("x %.3f", to / from) : "-");
}

// Throws the JSON library's exception unless the page and the tables can show the document.
void Check(const Json& document) {
  for (const char* part : {"command_line", "started", "address", "server", "server_version"}) {
    static_cast<void>(document.at("run").at(part));
  }
  static_cast<void>(document.at("plan").at("model").get<std::string>());
  if (document.contains("search")) {
    static_cast<void>(FoundRateOf(document));
    static_cast<void>(ObjectivesOf(document));
  }
  for (const Json& step : document.at("steps")) {
    static_cast<void>(LoadName(step));
    for (const char* part : kStepParts) static_cast<void>(step.at(part));
    for (const Figure& figure : kFigures) static_cast<void>(Value(step, figure));
  }
}

}  // namespace

absl::StatusOr<NamedReport> ReadReport(const std::string& path) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<std::string> bytes = file->Read(0, file->size());
  if (!bytes.ok()) return bytes.status();
  try {
    Json document = Json::parse(*bytes);
    Check(document);
    return NamedReport{path.substr(path.rfind('/') + 1), std::move(document)};
  } catch (const Json::exception& error) {
    return file->Error(absl::StrCat("is not a report of load-test --json: ", error.what()));
  }
}

std::string SavedTable(const JsonValue& report) {
  std::string table = absl::StrFormat("%-24s", "load");
  for (const Figure& figure : kFigures) absl::StrAppendFormat(&table, " %12s", figure.name);
  table += "\n";
  for (const Json& step : (*report).at("steps")) {
    absl::StrAppendFormat(&table, "%-24s", LoadName(step));
    for (const Figure& figure : kFigures) {
      absl::StrAppendFormat(&table, " %12.3f", Value(step, figure));
    }
    table += "\n";
  }
  if (!(*report).contains("search")) return table;
  const double found = FoundRateOf(*report);
  return absl::StrCat(
      table, "\nhighest rate that meets ", absl::StrJoin(ObjectivesOf(*report), ", "), ": ",
      found > 0 ? absl::StrFormat("%.6g requests/s", found) : "none of the rates tried", "\n");
}

std::string ComparisonTable(const JsonValue& a, const JsonValue& b) {
  std::string table;
  std::map<std::string, int> seen;  // a list of steps may repeat a load
  for (const Json& before : (*a).at("steps")) {
    const std::string load = LoadName(before);
    const Json* const after = FindStep(*b, load, seen[load]++);
    if (after == nullptr) continue;
    for (const Figure& figure : kFigures) {
      table += ComparisonLine(load, figure.name, Value(before, figure), Value(*after, figure));
    }
  }
  if ((*a).contains("search") && (*b).contains("search") && ObjectivesOf(*a) == ObjectivesOf(*b)) {
    table += ComparisonLine("highest rate", "requests/s", FoundRateOf(*a), FoundRateOf(*b));
  }
  if (table.empty()) return "The reports have no step with the same load.\n";
  return absl::StrCat(
      absl::StrFormat("%-24s %-12s %12s %12s  %s\n", "load", "figure", "A", "B", "B to A"), table);
}

}  // namespace attendant::client
