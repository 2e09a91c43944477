#include "server/inference/refused_methods.h"

#include <utility>

#include "absl/strings/strip.h"

namespace attendant::server {
namespace {

constexpr char kNoSharedMemory[] =
    "shared memory is not supported; send tensors as raw_input_contents";
constexpr char kModelsAreFiles[] =
    "models are loaded and unloaded by changing --model-repository, not by calls";

constexpr std::pair<const char*, const char*> kRefused[] = {
    {"ModelStreamInfer",
     "streaming inference is not supported; call ModelInfer, or EncodeStream of attendant.v1"},
    {"SystemSharedMemoryRegister", kNoSharedMemory},
    {"CudaSharedMemoryRegister", kNoSharedMemory},
    {"RepositoryModelLoad", kModelsAreFiles},
    {"RepositoryModelUnload", kModelsAreFiles},
    {"TraceSetting", "trace settings are not supported; send a W3C traceparent to correlate logs"},
    {"LogSettings", "log settings cannot be changed while the server runs; use --log-level"},
};

}  // namespace

const char* WhyNoMethod(absl::string_view path) {
  if (absl::ConsumePrefix(&path, "/inference.GRPCInferenceService/")) {
    for (const auto& [name, why] : kRefused) {
      if (path == name) return why;
    }
  }
  return "the server has no such method";
}

}  // namespace attendant::server
