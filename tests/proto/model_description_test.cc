// Tests of a model's description as text and as JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/byte_text.h"
#include "proto/model_json.h"
#include "proto/model_table.h"

namespace attendant::proto {
namespace model_description_test {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

// Returns the paths of all fields, including those of nested messages: "layers", "layer",
// "layer.heads".
void AddFields(const Descriptor& type, const std::string& prefix, std::set<std::string>& fields) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = absl::StrCat(prefix, field.name());
    fields.insert(path);
    if (field.message_type() == nullptr || field.is_repeated()) continue;
    AddFields(*field.message_type(), absl::StrCat(path, "."), fields);
  }
}

std::set<std::string> Fields() {
  std::set<std::string> fields;
  AddFields(*v1::GetModelResponse::descriptor(), "", fields);
  return fields;
}

// Returns the fields that rows name, with everything inside them.
TEST(ModelTableTest, TellsEveryFieldOfTheMessage) {
  std::set<std::string> named = {"pruned_layers", "stage_costs"};  // these have lines of their own
  for (const ModelRow& row : ModelTable()) {
    for (const absl::string_view field : absl::StrSplit(row.fields, ' ')) named.emplace(field);
  }
  EXPECT_THAT(Fields(), IsSupersetOf(named)) << "a row names a field that there is not";
  std::set<std::string> untold;
  for (const std::string& field : Fields()) {
    bool told = false;
    for (const std::string& name : named) {
      told |= field == name || field.starts_with(name + ".") || name.starts_with(field + ".");
    }
    if (!told) untold.insert(field);
  }
  EXPECT_THAT(untold, IsEmpty());
}

// Returns the lines as "label: text".
std::vector<std::string> Lines(const v1::GetModelResponse& model) {
  std::vector<std::string> lines;
  for (const ModelLine& line : ModelLines(model)) {
    lines.push_back(absl::StrCat(line.label, ": ", line.text));
  }
  return lines;
}

TEST(ModelLinesTest, ClassifiersSayHowScoresAreMade) {
  v1::GetModelResponse model;
  model.set_classes(3);
  EXPECT_THAT(Lines(model), Contains("classifier: 3 classes"));
  model.set_class_scores(v1::SCORES_SIGMOID);
  EXPECT_THAT(Lines(model), Contains("classifier: 3 classes, sigmoid scores"));
  model.set_class_scores(v1::SCORES_SOFTMAX);
  EXPECT_THAT(Lines(model), Contains("classifier: 3 classes, softmax scores"));
  model.set_class_scores(v1::SCORES_PLAIN);
  EXPECT_THAT(Lines(model), Contains("classifier: 3 classes, raw scores"));
}

TEST(ModelLinesTest, LeaveOutWhatAModelDoesNotHave) {
  v1::GetModelResponse model;
  model.set_layers(2);
  model.set_weight_sets(2);
  model.mutable_layer()->set_attention("softmax");
  model.mutable_layer()->set_norm_placement("none");
  EXPECT_THAT(Lines(model), ::testing::ElementsAre(
                                "layers: 2", "hidden size: 0", "input projections: 0",
                                "heads: 0, keys 0 and values 0 wide; scores scaled by 0",
                                "output projection: no", "attention width: 0", "feed-forward: none",
                                "norm: none", "embeddings: none: takes hidden states"));
}

TEST(ModelLinesTest, TellNoLayersWhereThereAreNone) {
  v1::GetModelResponse model;
  model.mutable_layer()->set_hidden_size(6);
  EXPECT_THAT(Lines(model), ::testing::ElementsAre("layers: 0", "hidden size: 6",
                                                   "embeddings: none: takes hidden states"));
}

// A bottleneck brings the inputs of keys and values to its own width; such a layer takes no memory.
TEST(ModelLinesTest, TellAMemoryFromABottleneck) {
  v1::GetModelResponse model;
  model.set_layers(1);
  model.mutable_layer()->set_hidden_size(512);
  model.mutable_layer()->set_key_input_width(128);
  model.mutable_layer()->set_value_input_width(512);
  EXPECT_THAT(Lines(model), Contains("memory: required: keys from 128 columns, values from 512"));
  model.mutable_layer()->set_bottleneck(128);
  EXPECT_THAT(Lines(model), Not(Contains(::testing::StartsWith("memory: "))));
}

TEST(ModelLinesTest, TellExperts) {
  v1::GetModelResponse model;
  model.set_layers(2);
  model.mutable_layer()->set_experts(8);
  model.mutable_layer()->set_experts_per_token(2);
  model.add_expert_layers(1);
  EXPECT_THAT(Lines(model), Contains("experts: 8, 2 for each token, in 1 layer"));
}

TEST(ModelLinesTest, TellPoolingLimitsAndThreads) {
  v1::GetModelResponse model;
  v1::PoolingDescription& pooling = *model.mutable_pooling();
  pooling.add_modes("mean");
  pooling.add_modes("max");
  pooling.set_dense_width(3);
  pooling.set_dense_activation("tanh");
  pooling.add_further_dense()->set_activation("relu");
  pooling.mutable_block()->set_activation("gelu");
  pooling.mutable_end()->set_id(7);
  model.mutable_similarity()->set_scale(100);
  model.mutable_similarity()->set_bias(-10.5);
  model.mutable_token_head()->mutable_end()->set_is_largest(true);
  pooling.mutable_further_dense(0)->set_residual(true);
  pooling.set_dense_residual(true);
  pooling.set_excludes_prompt(true);
  pooling.set_normalize(true);
  pooling.set_width(3);
  model.set_text_pooling(v1::MEAN);
  model.set_base("other");
  model.set_weight_bytes(3 << 19);
  model.mutable_limits()->set_max_request_tokens(8);
  model.mutable_limits()->set_max_request_bytes(9);
  model.mutable_thread_plan()->set_instances(2);
  model.mutable_thread_plan()->set_threads_per_instance(4);
  model.mutable_thread_plan()->set_onednn_version("2.6");
  model.mutable_thread_plan()->add_instance_nodes(0);
  model.mutable_thread_plan()->add_instance_nodes(1);
  EXPECT_THAT(
      Lines(model),
      IsSupersetOf({"pooling: mean and max, dense layer with tanh and residual, dense layer with "
                    "relu and residual, feed-forward block with gelu, up to the token of id 7, "
                    "without prompts, normalized; 3 wide",
                    "text and image: 100 x cosine + -10.5",
                    "token head: each token, up to the token of the largest id; 0 wide",
                    "text pooling: mean", "weights: 1.5 MiB", "shares weights of: other",
                    "request limit: 8 tokens, 9 bytes", "threads: 2 x 4, oneDNN 2.6",
                    "on NUMA nodes: 0 1"}));
}

// Sets every field, repeated ones once.
void Fill(Message& message) {
  const google::protobuf::Reflection& fields = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    const bool repeated = field->is_repeated();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        repeated ? fields.AddInt32(&message, field, 7) : fields.SetInt32(&message, field, 7);
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        repeated ? fields.AddInt64(&message, field, 7) : fields.SetInt64(&message, field, 7);
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        repeated ? fields.AddString(&message, field, "s") : fields.SetString(&message, field, "s");
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        Fill(repeated ? *fields.AddMessage(&message, field)
                      : *fields.MutableMessage(&message, field));
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        fields.SetFloat(&message, field, 0.1f);
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        fields.SetBool(&message, field, true);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        fields.SetEnumValue(&message, field, 1);
        break;
      default:
        ADD_FAILURE() << field->full_name() << " has a type that model_json.cc does not know";
    }
  }
}

void ExpectNoNulls(const Json& json, const std::string& path) {
  EXPECT_FALSE(json.is_null()) << path;
  if (!json.is_structured()) return;
  EXPECT_FALSE(json.empty()) << path;
  for (const auto& [key, value] : json.items()) ExpectNoNulls(value, absl::StrCat(path, ".", key));
}

TEST(ModelJsonTest, HoldsEveryField) {
  v1::GetModelResponse model;
  Fill(model);
  const Json json = ToJson(model);
  ExpectNoNulls(json, "");
  EXPECT_EQ(json.size(), static_cast<size_t>(model.GetDescriptor()->field_count()));
  EXPECT_EQ(json["layers"], 7);
  EXPECT_EQ(json["layer"]["score_scale"].dump(), "0.1");
  EXPECT_EQ(json["has_exit_norm"], true);
  EXPECT_EQ(json["compute_dtype"], "float32");
  EXPECT_EQ(json["block_pairs"].dump(), "[[7,7]]");
  EXPECT_EQ(json["pruned_layers"].dump(), R"([{"layer":7,"heads":[7]}])");
  EXPECT_EQ(json["unused_tensors"].dump(), R"(["s"])");
}

TEST(ModelJsonTest, TellsWhatIsNotSet) {
  const Json json = ToJson(v1::GetModelResponse());
  EXPECT_EQ(json["embeddings"], nullptr);
  EXPECT_EQ(json["compute_dtype"], nullptr);
  EXPECT_EQ(json["weight_bytes"], 0);
  EXPECT_EQ(json["windowed_layers"], Json::array());
}

TEST(ByteTextTest, RoundsToATenth) {
  EXPECT_EQ(InMebibytes(0), "0.0 MiB");
  EXPECT_EQ(InMebibytes((int64_t{1} << 40) + (1 << 19)), "1048576.5 MiB");
}

}  // namespace model_description_test
}  // namespace attendant::proto
