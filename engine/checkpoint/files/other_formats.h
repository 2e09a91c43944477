// The refusal of weights in other formats than safetensors, which says how to convert them.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace attendant {

// The files, without their endings, of two heads that FlagEmbedding saves with an encoder.
inline constexpr const char* kM3Heads[] = {"sparse_linear", "colbert_linear"};

// Returns whether a file of that name is a pickle by its ending.
bool IsPickle(const std::string& name);

// Returns INVALID_ARGUMENT for the file `name`, a pickle, of the folder, with the command that
// converts it to the file `target`.
absl::Status RefusePickle(const std::string& folder, const std::string& name,
                          const std::string& target = "model.safetensors");

// Looks for weights in other formats in the folder and in its folders onnx and openvino. Returns OK
// if there are none; otherwise INVALID_ARGUMENT with the file and the command that converts it.
absl::Status RefuseOtherFormats(const std::string& folder);

}  // namespace attendant
