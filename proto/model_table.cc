#include "proto/model_table.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/byte_text.h"

namespace attendant::proto {
namespace {

using Model = v1::GetModelResponse;

std::string UnlessZero(int64_t number, absl::string_view after) {
  return number == 0 ? "" : absl::StrCat(number, after);
}

std::string Count(int64_t number, const char* noun) {
  return absl::StrCat(number, " ", noun, number == 1 ? "" : "s");
}

// Unit of windows.
std::string Unit(const Model& model) {
  const int64_t block = model.layer().window_block();
  return block <= 1 ? " tokens" : absl::StrCat(" blocks of ", block, " tokens");
}

// A layer that needs a memory has no bottleneck.
bool NeedsMemory(const v1::LayerDescription& layer) {
  return layer.bottleneck() == 0 && (layer.key_input_width() != layer.hidden_size() ||
                                     layer.value_input_width() != layer.hidden_size());
}

std::string Norm(const Model& model) {
  const v1::LayerDescription& layer = model.layer();
  return absl::StrCat(layer.norm_placement() == "none"
                          ? "none"
                          : absl::StrCat(layer.norm_kind(), ", ", layer.norm_placement(),
                                         ", epsilon ", layer.norm_epsilon()),
                      model.has_exit_norm() ? ", final norm" : "");
}

std::string Embeddings(const Model& model) {
  if (!model.has_embeddings()) return "none: takes hidden states";
  const v1::EmbeddingDescription& embeddings = model.embeddings();
  const int64_t longest = embeddings.longest_sequence(), meant = embeddings.max_sequence_length();
  return absl::StrCat("vocabulary ", embeddings.vocabulary(), ", positions ",
                      embeddings.positions(), ", token types ", embeddings.token_types(),
                      ", width ", embeddings.width(), "; sequences ",
                      longest == 0 ? "of any length" : absl::StrCat("up to ", longest),
                      meant == longest ? "" : absl::StrCat(", truncated at ", meant),
                      embeddings.has_text_padding()
                          ? absl::StrCat("; texts padded to ", embeddings.text_padding().length())
                          : "");
}

// Omits rank_scores, which differ only for regressions and for models with several classes.
std::string Classifier(const Model& model) {
  const char* scores = "";
  if (model.class_scores() == v1::SCORES_SOFTMAX) scores = ", softmax scores";
  if (model.class_scores() == v1::SCORES_SIGMOID) scores = ", sigmoid scores";
  if (model.class_scores() == v1::SCORES_PLAIN) scores = ", raw scores";
  return UnlessZero(model.classes(), absl::StrCat(" classes", scores));
}

std::string Features(const Model& model) {
  if (!model.has_front()) return "";
  const v1::FrontDescription& front = model.front();
  return absl::StrCat(
      "of width ", front.feature_width(), "; ", front.own_rows(), " prefix tokens; ",
      front.features() == 0 ? "any number"
                            : absl::StrCat(front.needs_every() ? "" : "up to ", front.features()));
}

std::string Pooling(const v1::PoolingDescription& pooling) {
  return absl::StrCat(
      pooling.modes().empty() ? "each token" : absl::StrJoin(pooling.modes(), " and "),
      pooling.dense_width() > 0 ? absl::StrCat(", dense layer with ", pooling.dense_activation(),
                                               pooling.dense_residual() ? " and residual" : "")
                                : "",
      absl::StrJoin(pooling.further_dense(), "",
                    [](std::string* out, const v1::DenseDescription& dense) {
                      absl::StrAppend(out, ", dense layer with ", dense.activation(),
                                      dense.residual() ? " and residual" : "");
                    }),
      pooling.has_block() ? absl::StrCat(", feed-forward block with ", pooling.block().activation())
                          : "",
      pooling.has_end()
          ? absl::StrCat(", up to the token of ", pooling.end().is_largest()
                                                      ? "the largest id"
                                                      : absl::StrCat("id ", pooling.end().id()))
          : "",
      pooling.excludes_prompt() ? ", without prompts" : "",
      pooling.normalize() ? ", normalized" : "", "; ", pooling.width(), " wide");
}

std::string Convolution(const Model& model) {
  const v1::ConvolutionDescription& convolution = model.layer().convolution();
  if (convolution.taps() == 0) return "";
  return absl::StrCat("over ", convolution.taps(), " tokens, ", convolution.activation(), ", ",
                      Count(convolution.groups(), "group"), ", in ",
                      Count(model.convolution_layers_size(), "layer"));
}

constexpr absl::string_view kHiddenSize = "hidden size";  // also printed for models without layers

constexpr ModelRow kRows[] = {
    {"name", "name", [](const Model& m) { return m.name(); }},
    {"family", "family", [](const Model& m) { return m.family(); }},
    {"layers", "layers weight_sets",
     [](const Model& m) {
       return absl::StrCat(m.layers(),
                           m.weight_sets() == m.layers()
                               ? ""
                               : absl::StrCat(", with ", m.weight_sets(), " weight sets"));
     }},
    {kHiddenSize.data(), "layer.hidden_size",
     [](const Model& m) { return absl::StrCat(m.layer().hidden_size()); }},
    {"memory", "layer.key_input_width layer.value_input_width",
     [](const Model& m) {
       return NeedsMemory(m.layer())
                  ? absl::StrCat("required: keys from ", m.layer().key_input_width(),
                                 " columns, values from ", m.layer().value_input_width())
                  : "";
     }},
    {"input projections", "layer.input_projections",
     [](const Model& m) { return absl::StrCat(m.layer().input_projections()); }},
    {"heads", "layer.heads layer.key_width layer.value_width layer.score_scale",
     [](const Model& m) {
       return absl::StrCat(m.layer().heads(), ", keys ", m.layer().key_width(), " and values ",
                           m.layer().value_width(), " wide; scores scaled by ",
                           m.layer().score_scale());
     }},
    {"key/value heads", "layer.key_value_heads",
     [](const Model& m) {
       const int64_t shared = m.layer().key_value_heads();
       return shared == m.layer().heads() ? "" : absl::StrCat(shared);
     }},
    {"query and key norms", "layer.query_key_norms",
     [](const Model& m) {
       const std::string& norms = m.layer().query_key_norms();
       if (norms == "each_head") return std::string("over each head");
       return std::string(norms == "all_heads" ? "over all heads" : "");
     }},
    {"attention", "layer.attention layer.causal",
     [](const Model& m) {
       if (m.layer().causal()) return absl::StrCat(m.layer().attention(), ", causal");
       return m.layer().attention() == "softmax" ? "" : m.layer().attention();
     }},
    {"output projection", "layer.has_output_projection",
     [](const Model& m) { return std::string(m.layer().has_output_projection() ? "yes" : "no"); }},
    {"attention width", "layer.output_width",
     [](const Model& m) { return absl::StrCat(m.layer().output_width()); }},
    {"bottleneck", "layer.bottleneck",
     [](const Model& m) { return UnlessZero(m.layer().bottleneck(), " wide around all blocks"); }},
    {"feed-forward", "layer.feed_forward_width layer.activation layer.has_gate",
     [](const Model& m) {
       return m.layer().feed_forward_width() == 0
                  ? "none"
                  : absl::StrCat(m.layer().feed_forward_width(), ", ", m.layer().activation(),
                                 m.layer().has_gate() ? ", gated" : "");
     }},
    {"experts", "layer.experts layer.experts_per_token expert_layers",
     [](const Model& m) {
       return m.layer().experts() == 0
                  ? ""
                  : absl::StrCat(m.layer().experts(), ", ", m.layer().experts_per_token(),
                                 " for each token, in ", Count(m.expert_layers_size(), "layer"));
     }},
    {"feed-forward blocks", "layer.feed_forwards",
     [](const Model& m) {
       return m.layer().feed_forwards() > 1 ? absl::StrCat(m.layer().feed_forwards()) : "";
     }},
    {"norm", "layer.norm_kind layer.norm_placement layer.norm_epsilon has_exit_norm", Norm},
    {"branch scale", "layer.has_branch_scale",
     [](const Model& m) { return std::string(m.layer().has_branch_scale() ? "yes" : ""); }},
    {"relative positions", "layer.relative_positions",
     [](const Model& m) { return m.layer().relative_positions(); }},
    {"window", "layer.window layer.window_block windowed_layers",
     [](const Model& m) {
       return m.layer().window() == 0
                  ? ""
                  : absl::StrCat(m.layer().window(), Unit(m),
                                 m.layer().causal() ? " back, in " : " on either side, in ",
                                 m.windowed_layers_size(), " layers");
     }},
    {"global", "layer.first_global_blocks layer.last_global_blocks",
     [](const Model& m) {
       return m.layer().first_global_blocks() + m.layer().last_global_blocks() == 0
                  ? ""
                  : absl::StrCat("the first ", m.layer().first_global_blocks(), " and the last ",
                                 m.layer().last_global_blocks(), Unit(m));
     }},
    {"listed global", "global_blocks",
     [](const Model& m) { return UnlessZero(m.global_blocks_size(), Unit(m)); }},
    {"listed pairs", "block_pairs",
     [](const Model& m) { return UnlessZero(m.block_pairs_size(), absl::StrCat(" of", Unit(m))); }},
    {"no window", "layer.full_attention_up_to",
     [](const Model& m) {
       return m.layer().full_attention_up_to() == 0
                  ? ""
                  : absl::StrCat("up to ", m.layer().full_attention_up_to(), " tokens");
     }},
    {"convolution", "layer.convolution convolution_layers", Convolution},
    {"embeddings", "embeddings", Embeddings},
    {"texts", "takes_texts why_no_texts",
     [](const Model& m) {
       if (m.takes_texts()) return std::string("yes");
       return m.why_no_texts().empty() ? "" : absl::StrCat("no: ", m.why_no_texts());
     }},
    {"features", "front", Features},
    {"pooling", "pooling pooled_width",
     [](const Model& m) { return m.has_pooling() ? Pooling(m.pooling()) : ""; }},
    {"text pooling", "text_pooling",
     [](const Model& m) { return std::string(m.text_pooling() == v1::MEAN ? "mean" : ""); }},
    {"classifier", "classifier classes class_scores rank_scores labels", Classifier},
    {"token head", "token_head multi_vector",
     [](const Model& m) {
       if (!m.has_token_head()) return std::string();
       return absl::StrCat(Pooling(m.token_head()),
                           m.multi_vector() ? ", vectors for late interaction" : "");
     }},
    {"text and image", "similarity",
     [](const Model& m) {
       return m.has_similarity()
                  ? absl::StrCat(m.similarity().scale(), " x cosine + ", m.similarity().bias())
                  : "";
     }},
    {"sparse vectors", "sparse_width",
     [](const Model& m) { return UnlessZero(m.sparse_width(), " wide"); }},
    {"sequences in chunks", "sequence_state_bytes",
     [](const Model& m) {
       return m.sequence_state_bytes() == 0
                  ? ""
                  : absl::StrCat("over EncodeStream, ", m.sequence_state_bytes(),
                                 " bytes of state each");
     }},
    {"compute type", "compute_type compute_dtype emulate thread_plan.isa",
     [](const Model& m) {
       return m.compute_type().empty()
                  ? ""
                  : absl::StrCat(m.compute_type(), m.emulate() ? ", emulated" : "", "; ISA ",
                                 m.thread_plan().isa());
     }},
    {"version", "model_version",
     [](const Model& m) { return m.model_version() == 0 ? "" : absl::StrCat(m.model_version()); }},
    {"from the Hub", "hub_repository hub_commit",
     [](const Model& m) {
       return m.hub_repository().empty()
                  ? ""
                  : absl::StrCat(m.hub_repository(), ", commit ", m.hub_commit());
     }},
    {"refused versions", "refused_versions",
     [](const Model& m) {
       return absl::StrJoin(m.refused_versions(), "; ",
                            [](std::string* out, const v1::RefusedVersion& refused) {
                              absl::StrAppend(out, refused.version(), ": ", refused.reason());
                            });
     }},
    {"matrix products", "gemm", [](const Model& m) { return m.gemm(); }},
    {"weights", "weight_bytes",
     [](const Model& m) { return m.weight_bytes() == 0 ? "" : InMebibytes(m.weight_bytes()); }},
    {"weight type", "weight_type", [](const Model& m) { return m.weight_type(); }},
    {"shares weights of", "base", [](const Model& m) { return m.base(); }},
    {"request limit", "limits.max_request_tokens limits.max_request_bytes",
     [](const Model& m) {
       return m.has_limits() ? absl::StrCat(m.limits().max_request_tokens(), " tokens, ",
                                            m.limits().max_request_bytes(), " bytes")
                             : "";
     }},
    {"response limit", "limits.max_answer_bytes",
     [](const Model& m) { return UnlessZero(m.limits().max_answer_bytes(), " bytes"); }},
    {"batch limit", "limits.max_batch_tokens",
     [](const Model& m) { return UnlessZero(m.limits().max_batch_tokens(), " tokens"); }},
    {"threads", "thread_plan.instances thread_plan.threads_per_instance thread_plan.onednn_version",
     [](const Model& m) {
       return m.has_thread_plan() ? absl::StrCat(m.thread_plan().instances(), " x ",
                                                 m.thread_plan().threads_per_instance(),
                                                 ", oneDNN ", m.thread_plan().onednn_version())
                                  : "";
     }},
    {"rows per thread", "thread_plan.rows_per_thread_from",
     [](const Model& m) {
       const int64_t from = m.thread_plan().rows_per_thread_from();
       return from == 0 ? "" : absl::StrCat("from ", from, " tokens");
     }},
    {"predicted batch time",
     "cost_model.seconds_per_layer cost_model.product_flops_per_second "
     "cost_model.attention_flops_per_second cost_model.correction",
     [](const Model& m) {
       const v1::CostModel& cost = m.cost_model();
       return m.has_cost_model()
                  ? absl::StrFormat(
                        "%.3f ms per layer, %.1f GFLOP/s in products, %.1f in "
                        "attention, corrected by %.2f",
                        cost.seconds_per_layer() * 1e3, cost.product_flops_per_second() / 1e9,
                        cost.attention_flops_per_second() / 1e9, cost.correction())
                  : "";
     }},
    {"tokenizing", "cost_model.text_bytes_per_second",
     [](const Model& m) {
       const float rate = m.cost_model().text_bytes_per_second();
       return rate > 0 ? absl::StrFormat("%.1f MB/s per core", rate / 1e6) : std::string();
     }},
    {"on NUMA nodes", "thread_plan.instance_nodes",
     [](const Model& m) { return absl::StrJoin(m.thread_plan().instance_nodes(), " "); }},
    {"unused tensors", "unused_tensors",
     [](const Model& m) { return absl::StrJoin(m.unused_tensors(), ", "); }},
};

// Formats the three numbers of a cost.
std::string Cost(const v1::StageCost& cost, const char* pair) {
  std::vector<std::string> parts;
  if (cost.flops_per_token() > 0)
    parts.push_back(absl::StrCat(cost.flops_per_token(), " per token"));
  if (cost.flops_per_pair() > 0)
    parts.push_back(absl::StrCat(cost.flops_per_pair(), " per ", pair));
  if (cost.flops_per_sequence() > 0) {
    parts.push_back(absl::StrCat(cost.flops_per_sequence(), " per sequence"));
  }
  return absl::StrJoin(parts, ", ");
}

void AddCosts(const Model& model, std::vector<ModelLine>& lines) {
  if (model.stage_costs().empty()) return;
  v1::StageCost all;
  for (const v1::StageCost& cost : model.stage_costs()) {
    // Used only for return_sparse.
    if (cost.stage().starts_with("vocabulary_head.") || cost.stage().starts_with("lexical_head."))
      continue;
    all.set_flops_per_token(all.flops_per_token() + cost.flops_per_token());
    all.set_flops_per_pair(all.flops_per_pair() + cost.flops_per_pair());
    all.set_flops_per_sequence(all.flops_per_sequence() + cost.flops_per_sequence());
  }
  lines.push_back({"FLOPs", Cost(all, "pair of query and key")});
  for (const v1::StageCost& cost : model.stage_costs()) {
    lines.push_back({absl::StrCat("  ", cost.stage()), Cost(cost, "pair")});
  }
  for (const int64_t length : {128, 512}) {
    const auto tokens = static_cast<double>(length);
    const double attention = static_cast<double>(all.flops_per_pair()) * tokens * tokens;
    const double total = static_cast<double>(all.flops_per_token()) * tokens + attention +
                         static_cast<double>(all.flops_per_sequence());
    lines.push_back({absl::StrFormat("  a sequence of %d tokens:", length),
                     absl::StrFormat("%.3f GFLOP, %.1f %% of it scores and context", total / 1e9,
                                     total == 0 ? 0 : 100 * attention / total)});
  }
}

}  // namespace

absl::Span<const ModelRow> ModelTable() { return kRows; }

std::vector<ModelLine> ModelLines(const v1::GetModelResponse& model) {
  std::vector<ModelLine> lines;
  for (const ModelRow& row : kRows) {
    const bool is_of_layers = absl::StartsWith(row.fields, "layer.");
    if (is_of_layers && model.layers() == 0 && row.label != kHiddenSize) continue;
    std::string text = row.text(model);
    if (!text.empty()) lines.push_back({row.label, std::move(text)});
  }
  for (const v1::PrunedLayer& pruned : model.pruned_layers()) {
    lines.push_back({absl::StrCat("heads of layer ", pruned.layer()),
                     pruned.heads().empty() ? "none left" : absl::StrJoin(pruned.heads(), " ")});
  }
  AddCosts(model, lines);
  return lines;
}

}  // namespace attendant::proto
