#include "engine/checkpoint/late_interaction/text_lengths.h"

#include <limits>
#include <utility>

namespace attendant {
namespace {

constexpr int64_t kUsualLength = 32;  // of queries that are expanded

std::optional<int64_t> ReadLength(const char* key, ConfigReader& config) {
  if (!config.Has({key})) return std::nullopt;
  return config.Integer({key}, TextLengthRange());
}

// Reads the library's query_expansion: null, or an object.
std::optional<TextLengths::Expansion> ReadExpansion(ConfigReader& config) {
  const Json* object = config.Object({"query_expansion"});
  if (object == nullptr) return std::nullopt;
  Problems own("query_expansion");
  ConfigReader reader(*object, own);
  constexpr Named<bool> kStrategies[] = {{"fixed", true}, {"min", false}};
  TextLengths::Expansion expansion;
  expansion.cuts = reader.Choice<bool>({"strategy"}, kStrategies);
  expansion.attends = reader.Boolean({"attend"}, false);
  expansion.token = reader.Text({"token"}, "");
  expansion.length = reader.Integer({"length"}, TextLengthRange());
  reader.AllowOnly({"strategy", "attend", "token", "length"});
  config.problems().AddError(own.ToStatus());
  return expansion;
}

}  // namespace

IntegerRange TextLengthRange() { return {1, std::numeric_limits<int32_t>::max()}; }

void TextLengths::FillFrom(const TextLengths& other) {
  if (!query) query = other.query;
  if (!document) document = other.document;
  if (!expansion) expansion = other.expansion;
}

TextLengths ReadTextLengths(ConfigReader& config) {
  TextLengths read = {ReadLength("query_length", config), ReadLength("document_length", config)};
  if (config.json().is_object() && config.json().contains("query_expansion")) {
    read.expansion = ReadExpansion(config);
  }
  if (read.expansion && *read.expansion && read.query && *read.query < (*read.expansion)->length) {
    config.Refuse("query_length: expected at least ", (*read.expansion)->length,
                  " (query_expansion.length); got ", *read.query);
  }
  return read;
}

TextLengths ReadPylateLengths(ConfigReader& config) {
  TextLengths read = ReadTextLengths(config);
  if (read.expansion) return read;
  if (!config.Boolean({"do_query_expansion"}, true)) {
    read.expansion.emplace();
    return read;
  }
  TextLengths::Expansion expansion;
  expansion.length = std::exchange(read.query, std::nullopt).value_or(kUsualLength);
  // attend_to_mask_tokens is Stanford's name for it.
  expansion.attends = config.Has({"attend_to_expansion_tokens"})
                          ? config.Boolean({"attend_to_expansion_tokens"})
                          : config.Boolean({"attend_to_mask_tokens"}, false);
  read.expansion.emplace(std::move(expansion));
  return read;
}

}  // namespace attendant
