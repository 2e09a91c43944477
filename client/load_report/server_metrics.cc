#include "client/load_report/server_metrics.h"

#include <curl/curl.h>

#include <cmath>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace attendant::client {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;

// Appends to the std::string that `text` is. Fewer bytes than given end the transfer.
size_t Append(const char* bytes, size_t, size_t count, void* text) {
  auto& all = *static_cast<std::string*>(text);
  if (all.size() + count > kMostBytes) return 0;
  all.append(bytes, count);
  return count;
}

void SetPem(CURL* curl, CURLoption option, const std::string& pem) {
  if (pem.empty()) return;
  curl_blob blob = {const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_COPY};
  curl_easy_setopt(curl, option, &blob);
}

absl::StatusOr<std::string> Get(const MetricsSource& source, absl::Duration timeout) {
  const std::string& url = source.url;
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 curl_easy_cleanup);
  if (curl == nullptr) return absl::InternalError("libcurl failed to initialize");
  std::string body;
  char why[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS,
                   static_cast<long>(absl::ToInt64Milliseconds(timeout)));
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, why);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, Append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  SetPem(curl.get(), CURLOPT_CAINFO_BLOB, source.ca);
  SetPem(curl.get(), CURLOPT_SSLCERT_BLOB, source.certificate);
  SetPem(curl.get(), CURLOPT_SSLKEY_BLOB, source.key);
  if (!source.token.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(curl.get(), CURLOPT_XOAUTH2_BEARER, source.token.c_str());
  }
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) {
    return absl::UnavailableError(
        absl::StrCat(url, ": ", why[0] != '\0' ? why : curl_easy_strerror(code)));
  }
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) return absl::UnavailableError(absl::StrCat(url, ": HTTP ", status));
  return body;
}

// Returns the end of a series' name and labels: the closing brace, or the end of the name.
size_t EndOfSeries(absl::string_view line) {
  bool quoted = false;
  const size_t brace = line.find('{');
  const size_t space = line.find(' ');
  if (brace == absl::string_view::npos || space < brace) return space;
  for (size_t i = brace; i < line.size(); ++i) {
    if (quoted && line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == '}' && !quoted) {
      return i + 1;
    }
  }
  return absl::string_view::npos;
}

// Returns the name of the family that a series belongs to.
std::string FamilyOf(absl::string_view series, const std::map<std::string, std::string>& types) {
  const absl::string_view name = series.substr(0, series.find('{'));
  for (const char* suffix : {"_bucket", "_sum", "_count"}) {
    absl::string_view family = name;
    if (absl::ConsumeSuffix(&family, suffix) && types.contains(std::string(family))) {
      return std::string(family);
    }
  }
  return std::string(name);
}

}  // namespace

absl::StatusOr<MetricsSample> ParseMetrics(const std::string& text) {
  MetricsSample sample;
  std::map<std::string, std::string> types;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    if (absl::StartsWith(line, "#")) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipWhitespace());
      if (words.size() == 4 && words[1] == "TYPE") types[words[2]] = words[3];
      continue;
    }
    const size_t end = EndOfSeries(line);
    double value = 0;
    const std::vector<absl::string_view> numbers =
        end == absl::string_view::npos
            ? std::vector<absl::string_view>()
            : absl::StrSplit(line.substr(end), absl::ByAnyChar(" \r"), absl::SkipEmpty());
    if (numbers.empty() || !absl::SimpleAtod(numbers[0], &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected Prometheus metrics; got '", line, "'"));
    }
    if (!std::isfinite(value)) continue;
    const std::string series(line.substr(0, end));
    const auto type = types.find(FamilyOf(series, types));
    const bool counts = type != types.end() && type->second != "gauge" && type->second != "untyped";
    (counts ? sample.counters : sample.gauges)[series] = value;
  }
  return sample;
}

absl::StatusOr<MetricsSample> FetchMetrics(const MetricsSource& source, absl::Duration timeout) {
  const absl::StatusOr<std::string> text = Get(source, timeout);
  if (!text.ok()) return text.status();
  absl::StatusOr<MetricsSample> sample = ParseMetrics(*text);
  if (!sample.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(source.url, ": ", sample.status().message()));
  }
  return sample;
}

JsonValue MetricsJson(const std::string& url, const MetricsSample& before,
                      const MetricsSample& after) {
  const auto value = [](const std::map<std::string, double>& values, const std::string& series) {
    const auto found = values.find(series);
    return found == values.end() ? 0 : found->second;
  };
  std::vector<std::pair<std::string, JsonValue>> counters, gauges;
  for (const auto& [series, count] : after.counters) {
    const double earlier = value(before.counters, series);
    // A server that has restarted counts from 0 again, which is how Prometheus reads it as well.
    counters.emplace_back(series, count < earlier ? count : count - earlier);
  }
  for (const auto& [series, now] : after.gauges) {
    gauges.emplace_back(series, std::vector<double>{value(before.gauges, series), now});
  }
  return {{"url", url},
          {"counters", JsonValue::Object(counters)},
          {"gauges", JsonValue::Object(gauges)}};
}

}  // namespace attendant::client
