#include "server/inference/refused_methods.h"

#include "absl/strings/strip.h"

namespace attendant::server {
namespace {

struct RefusedMethod {
  const char* name;
  const char* why;
};

constexpr char kNoSharedMemory[] =
    "the server registers no shared memory: send tensors as raw_input_contents";
constexpr char kModelsAreFiles[] =
    "models come and go with the folders of --model-repository, not by calls";

constexpr RefusedMethod kRefused[] = {
    {"ModelStreamInfer",
     "there is no streaming inference: call ModelInfer, or EncodeStream of attendant.v1"},
    {"SystemSharedMemoryRegister", kNoSharedMemory},
    {"CudaSharedMemoryRegister", kNoSharedMemory},
    {"RepositoryModelLoad", kModelsAreFiles},
    {"RepositoryModelUnload", kModelsAreFiles},
    {"TraceSetting", "the server does not trace: it takes and gives W3C's traceparent"},
    {"LogSettings", "the log is set when the server starts, by --log-level"},
};

}  // namespace

const char* WhyNoMethod(absl::string_view path) {
  if (absl::ConsumePrefix(&path, "/inference.GRPCInferenceService/")) {
    for (const RefusedMethod& method : kRefused) {
      if (path == method.name) return method.why;
    }
  }
  return "the server has no such method";
}

}  // namespace attendant::server
