// Flags of the requests that compute attention: the weight of each head, the rows to compute, and
// the form of the probabilities.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

#include "client/messages.h"

namespace attendant::client {

// Request is AttendRequest or EncodeRequest. The flags write into `request`, which must outlive the
// parsing.
template <typename Request>
void AddHeadGates(CLI::App& app, Request& request) {
  app.add_option("--head-gates", request.head_gates,
                 "How much each head counts, from 0 (left out) to 1: one number for each head, or "
                 "for each head of each layer in turn")
      ->delimiter(',')
      ->type_name("GATE,…");
}

template <typename Request>
void AddAttentionOptions(CLI::App& app, Request& request) {
  AddHeadGates(app, request);
  app.add_option("--query-rows", request.query_rows,
                 "Answer only these rows of the input, numbered across all its sequences: 0,5")
      ->delimiter(',')
      ->type_name("ROW,…");
  CLI::Option* mean = app.add_flag_callback(
      "--head-mean", [&request] { request.attention_form = AttentionForm::kHeadMean; },
      "Answer attention probabilities as their mean over the heads");
  app.add_option_function<uint32_t>(
         "--top-keys",
         [&request](uint32_t count) {
           request.attention_form = AttentionForm::kTopKeys;
           request.attention_top_k = count;
         },
         "Answer only the K largest attention probabilities of each query, with their keys")
      ->type_name("K")
      ->excludes(mean);
}

}  // namespace attendant::client
