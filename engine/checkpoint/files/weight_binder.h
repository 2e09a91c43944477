// Matches the tensors that a model must have with those that its files have.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/checkpoint/files/file_weights.h"
#include "engine/checkpoint/files/opened_checkpoint.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/safetensors.h"
#include "engine/checkpoint/files/tensor_part.h"
#include "engine/checkpoint/files/weight_files.h"

namespace attendant {

// Collects problems rather than stopping at the first. One thread.
class WeightBinder {
 public:
  // `subject` starts the message about all problems.
  explicit WeightBinder(std::string subject) : problems_(std::move(subject)) {}

  // `prefix` comes before the name of each of their tensors below.
  void AddFiles(const std::string& prefix, WeightFiles files);

  // The tensor of a file, or nullptr.
  const FileTensor* Find(const std::string& name) const;

  // The weight `spec` is the first of `places` that a file has. Dimensions of 1 before its own are
  // passed over. A problem: none is there, unless optional; wrong shape; not a float type.
  void Bind(const WeightSpec& spec, absl::Span<const TensorPart> places);

  // The weight `spec` is all of `parts` above each other, each with as many rows. Problems as
  // above.
  void BindStacked(const WeightSpec& spec, absl::Span<const TensorPart> parts);

  // Names of tensors that no weight came from, sorted.
  std::vector<std::string> Unbound() const;

  // "<file>: tensor '<name>' F32 [2, 3]", for problems with a tensor that is there.
  std::string Show(const std::string& name) const;

  Problems& problems() { return problems_; }

  // Puts the weights, the tensors of the files and the warnings into `checkpoint` and leaves this
  // empty; checks the digest of the files if `options` asks for it. All problems, if there
  // are any: then without the weights.
  absl::Status Finish(const CheckpointOptions& options, Checkpoint& checkpoint);

 private:
  struct Entry {
    int file;
    std::string name;  // in the file
    FileTensor tensor;
  };

  // Where `part`, which is there, has what `weight`, or some rows of it, of this shape needs.
  std::optional<WeightPlace> Place(const std::string& weight, const TensorPart& part,
                                   const std::vector<int64_t>& shape);

  absl::Status CheckDigest(const std::string& expected) const;
  std::vector<CheckpointTensor> ListTensors() const;

  Problems problems_;
  std::vector<InputFile> files_;
  std::vector<std::string> warnings_;
  std::map<std::string, Entry> entries_;
  // By tensor: the weights that it holds, by the number of their row part.
  std::map<std::string, std::multimap<int64_t, std::string>> bound_;
  WeightPlaces places_;
};

}  // namespace attendant
