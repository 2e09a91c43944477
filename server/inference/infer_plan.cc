#include "server/inference/infer_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "server/inference/infer_inputs.h"
#include "server/inference/infer_parameters.h"
#include "server/inference/infer_value.h"
#include "server/models/model_message.h"
#include "server/tensors/status_mapping.h"
#include "server/tensors/tensor_check.h"

namespace attendant::server {
namespace {

constexpr char kContextLayer[] = "context_layer";
constexpr char kAttentions[] = "attentions";

// Returns the number after `prefix`, such as "hidden_states.", if `name` has that form.
std::optional<int64_t> NumberAfter(absl::string_view name, absl::string_view prefix) {
  int64_t number;
  if (!absl::ConsumePrefix(&name, prefix) || !absl::SimpleAtoi(name, &number)) return std::nullopt;
  if (absl::StrCat(number) != name) return std::nullopt;  // " 1", "+1" or "01" names nothing
  return number;
}

class Planner {
 public:
  Planner(const inference::ModelInferRequest& request, const InferenceModel& model)
      : request_(request), model_(model), description_(model.model->encoder->description()) {}

  absl::StatusOr<InferPlan> Plan() {
    RETURN_IF_ERROR(CheckReserved(request_.parameters()));
    RETURN_IF_ERROR(ReadTimeout());
    RETURN_IF_ERROR(ReadStage());
    RETURN_IF_ERROR(plan_.attend ? ReadLayer() : ReadSpan());
    RETURN_IF_ERROR(ReadOutputs());
    RETURN_IF_ERROR(ReadDatatype());
    return std::move(plan_);
  }

 private:
  absl::Status ReadTimeout() {
    ASSIGN_OR_RETURN(const auto timeout, NumberIn(request_.parameters(), "timeout"));
    if (timeout.value_or(0) < 0) {
      return InvalidField("parameters.timeout", "0 or more microseconds", absl::StrCat(*timeout));
    }
    if (timeout.value_or(0) > 0) plan_.timeout = absl::Microseconds(*timeout);
    return absl::OkStatus();
  }

  absl::Status ReadStage() {
    ASSIGN_OR_RETURN(const auto stage, TextIn(request_.parameters(), "stage"));
    const bool wants_context =
        std::any_of(request_.outputs().begin(), request_.outputs().end(),
                    [](const auto& output) { return output.name() == kContextLayer; });
    const std::string name = stage.value_or(wants_context ? "context" : "");
    if (name.empty()) return absl::OkStatus();
    if (model_.input != InferenceInput::kHiddenStates) {
      return NotSupported(stage ? "parameters.stage" : "outputs",
                          Quote(stage ? name : kContextLayer), model_.name,
                          absl::StrCat("its inputs are not hidden states; use model ",
                                       model_.model->name, kHiddenSuffix));
    }
    plan_.attend.emplace();
    if (name == "context") {
      plan_.attend->set_stage(v1::CONTEXT);
    } else if (name == "projected") {
      plan_.attend->set_stage(v1::PROJECTED);
    } else if (name == "block") {
      plan_.attend->set_stage(v1::BLOCK);
    } else {
      return InvalidField("parameters.stage", "context, projected or block", Quote(name));
    }
    return absl::OkStatus();
  }

  // Reads the number of a layer, or of layers, from `least` to `most`.
  absl::Status ReadNumber(const char* name, int64_t least, int64_t most, int64_t& number) {
    ASSIGN_OR_RETURN(const auto given, NumberIn(request_.parameters(), name));
    number = given.value_or(number);
    if (number >= least && number <= most) return absl::OkStatus();
    return InvalidField(absl::StrCat("parameters.", name), absl::StrCat(least, "..", most),
                        absl::StrCat(number));
  }

  absl::Status ReadLayer() {
    int64_t layer = 0;
    if (description_.layers == 0) {
      return NotSupported("parameters.stage", "", model_.name, "it has only embeddings");
    }
    absl::Status status = ReadNumber("layer", 0, description_.layers - 1, layer);
    plan_.attend->set_layer(static_cast<uint32_t>(layer));
    return status;
  }

  absl::Status ReadSpan() {
    if (description_.layers == 0) return absl::OkStatus();  // only embeddings
    RETURN_IF_ERROR(ReadNumber("first_layer", 0, description_.layers - 1, first_layer_));
    layers_ = description_.layers - first_layer_;
    RETURN_IF_ERROR(ReadNumber("layer_count", 1, layers_, layers_));
    plan_.encode.mutable_layers()->set_first(static_cast<uint32_t>(first_layer_));
    plan_.encode.mutable_layers()->set_count(static_cast<uint32_t>(layers_));
    return absl::OkStatus();
  }

  absl::Status ReadOutputs() {
    plan_.encode.set_omit_hidden_states(true);
    for (const auto& output : request_.outputs()) {
      RETURN_IF_ERROR(Add(output.name()));
      RETURN_IF_ERROR(CheckNotShared(output.name(), output.parameters()));
      if (output.parameters().contains("classification")) {
        return absl::InvalidArgumentError(absl::StrCat(
            output.name(),
            ".parameters.classification: not supported; all class scores are returned"));
      }
    }
    if (request_.outputs_size() > 0) return absl::OkStatus();
    if (plan_.attend) return Add(kContextLayer);
    for (const TensorInterface& output : OutputsOf(model_)) {
      RETURN_IF_ERROR(Add(output.name));
    }
    return absl::OkStatus();
  }

  absl::Status Add(const std::string& name) {
    const std::optional<InferOutput> output = plan_.attend ? OfAttend(name) : OfEncode(name);
    if (!output) return InvalidField("outputs", Accepted(), Quote(name));
    const auto same =
        std::find_if(plan_.outputs.begin(), plan_.outputs.end(), [&](const InferOutput& other) {
          return other.kind == output->kind && other.layer == output->layer;
        });
    if (same != plan_.outputs.end()) {
      return InvalidField(
          "outputs", "each result once",
          same->name == name ? name + " twice" : absl::StrCat(same->name, " and ", name));
    }
    plan_.outputs.push_back(*output);
    return absl::OkStatus();
  }

  std::optional<InferOutput> OfAttend(const std::string& name) {
    const int64_t layer = plan_.attend->layer();
    if (name == kContextLayer) return InferOutput{name, OutputKind::kHiddenStates};
    if (name != kAttentions) return std::nullopt;
    plan_.attend->set_return_attention_probabilities(true);
    return InferOutput{name, OutputKind::kProbabilities, layer};
  }

  std::optional<InferOutput> OfEncode(const std::string& name) {
    if (std::optional<int64_t> number = NumberAfter(name, "hidden_states.")) {
      return Intermediate(name, *number);
    }
    if (std::optional<int64_t> layer = NumberAfter(name, "attentions.")) {
      if (*layer < first_layer_ || *layer >= first_layer_ + layers_) return std::nullopt;
      plan_.encode.add_attention_layers(static_cast<uint32_t>(*layer));
      return InferOutput{name, OutputKind::kProbabilities, *layer};
    }
    const bool per_token = description_.token_head.has_value();
    const bool scores_sequence = description_.classifier.has_value();
    if (name == "sentence_embedding" && description_.pooling)
      return Pooled(name, v1::MODEL_POOLING);
    if (name == "logits" && scores_sequence) return Pooled(name, v1::CLASSIFIER);
    if (per_token && (name == "token_embeddings" || name == "logits")) {
      plan_.encode.set_return_token_vectors(true);
      return InferOutput{name, OutputKind::kTokenVectors};
    }
    if (name != "last_hidden_state" && name != "token_embeddings") return std::nullopt;
    plan_.encode.set_omit_hidden_states(false);
    return InferOutput{name, OutputKind::kHiddenStates};
  }

  // Outputs of layers are numbered from 1; 0 would be the embeddings' output.
  std::optional<InferOutput> Intermediate(const std::string& name, int64_t number) {
    const int64_t layer = number - 1;
    if (layer < first_layer_ || layer >= first_layer_ + layers_) return std::nullopt;
    plan_.encode.add_intermediate_layers(static_cast<uint32_t>(layer));
    return InferOutput{name, OutputKind::kIntermediate, layer};
  }

  InferOutput Pooled(const std::string& name, v1::Pooling pooling) {
    plan_.encode.set_return_pooled(true);
    plan_.encode.set_pooling(pooling);
    return {name, OutputKind::kPooled};
  }

  // Names for a message.
  std::string Accepted() const {
    if (plan_.attend) return absl::StrCat("context_layer or attentions, with a stage");
    std::vector<std::string> names;
    for (const TensorInterface& output : OutputsOf(model_)) names.push_back(output.name);
    names.push_back("token_embeddings");
    if (model_.input == InferenceInput::kHiddenStates) names.push_back(kContextLayer);
    const int64_t end = first_layer_ + layers_;
    return absl::StrCat("one of ", absl::StrJoin(names, ", "), ", hidden_states.N with N in ",
                        first_layer_ + 1, "..", end, ", attentions.N with N in ", first_layer_,
                        "..", end - 1);
  }

  absl::Status ReadDatatype() {
    ASSIGN_OR_RETURN(const auto name, TextIn(request_.parameters(), "output_datatype"));
    const Datatype* const type = FindDatatype(name.value_or("FP32"));
    if (type == nullptr || !IsFloat(*FromWire(type->wire))) {
      return InvalidField("parameters.output_datatype", "FP32, FP16 or BF16", Quote(*name));
    }
    plan_.encode.set_output_dtype(type->wire);
    if (plan_.attend) plan_.attend->set_output_dtype(type->wire);
    return ReadFlags();
  }

  absl::Status ReadFlags() {
    ASSIGN_OR_RETURN(const auto normalize, FlagIn(request_.parameters(), "normalize"));
    if (normalize.value_or(false)) {
      plan_.encode.set_normalize_pooled(plan_.encode.return_pooled());
      plan_.encode.set_normalize_token_vectors(plan_.encode.return_token_vectors());
    }
    ASSIGN_OR_RETURN(const auto prompt, NumberIn(request_.parameters(), "prompt_tokens"));
    if (prompt && plan_.encode.return_pooled() && plan_.encode.pooling() == v1::MODEL_POOLING) {
      plan_.encode.add_prompt_tokens(*prompt);
    }
    ASSIGN_OR_RETURN(const auto task, TextIn(request_.parameters(), "task"));
    if (task && plan_.encode.return_token_vectors()) plan_.encode.set_task(*task);
    ASSIGN_OR_RETURN(const auto prompt_name, TextIn(request_.parameters(), "prompt_name"));
    if (prompt_name) plan_.encode.set_prompt_name(*prompt_name);
    ASSIGN_OR_RETURN(const auto truncate, FlagIn(request_.parameters(), "truncate"));
    if (truncate.value_or(false)) {
      // Token ids include special tokens, of which the first would be lost on the left.
      const bool has_texts = HasInput(request_, kTextInputs[0]);
      plan_.encode.set_truncation(has_texts ? DefaultTruncation(*model_.model->tokenization)
                                            : v1::TRUNCATE_RIGHT);
    }
    return absl::OkStatus();
  }

  const inference::ModelInferRequest& request_;
  const InferenceModel& model_;
  const ModelDescription& description_;
  int64_t first_layer_ = 0;
  int64_t layers_ = 0;
  InferPlan plan_;
};

}  // namespace

absl::StatusOr<InferPlan> PlanInfer(const inference::ModelInferRequest& request,
                                    const InferenceModel& model) {
  return Planner(request, model).Plan();
}

}  // namespace attendant::server
