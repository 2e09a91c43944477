// Flags that several commands have. Each writes into a target, which must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/flags/flag.h"
#include "client/flags/flag_kinds.h"
#include "client/messages.h"

namespace attendant::client {

Flag ModelFlag(std::string& model);
Flag LayerFlag(uint32_t& layer);
Flag LayersFlag(std::string& span);  // for ParseLayerSpan
Flag RequestIdFlag(std::string& id);
Flag HtmlFlag(std::string& path);
Flag SequenceFirstFlag(Layout& layout);

// The kind of a float type. For an optional type, the help shows `initial` as the default.
FlagKind FloatTypeKind(DataType& type);
FlagKind FloatTypeKind(std::optional<DataType>& type, const std::string& initial);

// Request is AttendRequest or EncodeRequest, here and below.
template <typename Request>
Flag HeadGatesFlag(Request& request) {
  return {"--head-gates", "GATE,...",
          "Weight of each head, from 0 (skipped) to 1: one number per head, or per head of each "
          "layer, layer by layer",
          ListKind(request.head_gates)};
}

// Returns the flags for the weight of each head, the rows to compute, and the form of the
// probabilities.
template <typename Request>
Flags AttentionFlags(Request& request) {
  FlagKind top_keys = IntegerKind<uint32_t>(request.attention_top_k, 1);
  top_keys.read = [&request, read = top_keys.read](const std::string& text) {
    request.attention_form = AttentionForm::kTopKeys;
    return read(text);
  };
  return {
      HeadGatesFlag(request),
      {"--query-rows", "ROW,...",
       "Return only these rows of the input, numbered across all its sequences, such as 0,5",
       ListKind(request.query_rows)},
      {"--head-mean", "", "Return attention probabilities averaged over the heads",
       SetKind(request.attention_form, AttentionForm::kHeadMean)},
      {"--top-keys", "K",
       "Return only the K largest attention probabilities of each query, with their keys",
       std::move(top_keys), "", "--head-mean"},
  };
}

}  // namespace attendant::client
