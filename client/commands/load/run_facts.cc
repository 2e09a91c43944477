#include "client/commands/load/run_facts.h"

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/cli/to_json.h"
#include "inference/inference_service.pb.h"

namespace attendant::client {
namespace {

constexpr char kServerMetadata[] = "/inference.GRPCInferenceService/ServerMetadata";

// The fields of GetModel that speed depends on.
constexpr const char* kModelFields[] = {"name",          "family",       "layers",     "layer",
                                        "compute_dtype", "compute_type", "gemm",       "emulate",
                                        "model_version", "limits",       "thread_plan"};

inference::ServerMetadataResponse AskForMetadata(const Session& session, const CallOptions& call) {
  inference::ServerMetadataResponse metadata;
  absl::Notification done;
  const PreparedRequest request =
      PreparedRequest::Raw(kServerMetadata, inference::ServerMetadataRequest().SerializeAsString());
  session.Connect().FetchAsync(request, call, [&](const absl::StatusOr<RawAnswer>& answer) {
    if (!answer.ok() || !metadata.ParseFromString(answer->content)) metadata.Clear();
    done.Notify();
  });
  done.WaitForNotification();
  return metadata;
}

}  // namespace

RunFacts AskForFacts(const Session& session, const CallOptions& call, const ModelInfo& model) {
  const inference::ServerMetadataResponse metadata = AskForMetadata(session, call);
  RunFacts facts;
  facts.command_line = session.command_line;
  facts.started = absl::Now();
  facts.client_version = ATTENDANT_VERSION;
  facts.address = session.address;
  facts.server = metadata.name();
  facts.server_version = metadata.version();
  const JsonValue described = ToJson(model);
  std::vector<std::pair<std::string, JsonValue>> fields;
  for (const char* field : kModelFields) fields.emplace_back(field, described.Member(field));
  facts.model = JsonValue::Object(fields);
  return facts;
}

}  // namespace attendant::client
