#include "client/cli/shared_flags.h"

namespace attendant::client {
namespace {

std::vector<std::pair<std::string, DataType>> FloatTypes() {
  return {{"float32", DataType::kFloat32},
          {"float16", DataType::kFloat16},
          {"bfloat16", DataType::kBFloat16}};
}

}  // namespace

Flag ModelFlag(std::string& model) {
  return {"--model", "NAME", "Name of the model", TextKind(model, "the server's only one")};
}

Flag LayerFlag(uint32_t& layer) {
  return {"--layer", "INDEX", "Index of the layer, from 0", IntegerKind(layer)};
}

Flag LayersFlag(std::string& span) {
  return {"--layers", "FIRST:COUNT", "Layers to run, such as 0:6", TextKind(span, "all")};
}

Flag RequestIdFlag(std::string& id) {
  return {"--request-id", "ID", "Request id for the server's log", TextKind(id)};
}

Flag HtmlFlag(std::string& path) {
  return {"--html", "FILE", "Also write one self-contained page to FILE", TextKind(path)};
}

Flag SequenceFirstFlag(Layout& layout) {
  return {"--sequence-first", "",
          "Send and return tensors as [S, B, ...], the default order of torch's modules; masks, "
          "biases and probabilities stay batch-first",
          SetKind(layout, Layout::kSequenceFirst)};
}

FlagKind FloatTypeKind(DataType& type) { return ChoiceKind<DataType>(type, FloatTypes()); }

FlagKind FloatTypeKind(std::optional<DataType>& type, const std::string& initial) {
  FlagKind kind = ChoiceKind<DataType>(type, FloatTypes());
  kind.initial = initial;
  return kind;
}

}  // namespace attendant::client
