// The matching of the tensors that a model must have with those that its files have (rule W11 in
// engine/checkpoint/README.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/checkpoint/files/file_weights.h"
#include "engine/checkpoint/files/opened_checkpoint.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/safetensors.h"
#include "engine/checkpoint/files/tensor_part.h"
#include "engine/checkpoint/files/weight_files.h"

namespace attendant {

// Collects problems instead of stopping at the first. Not thread-safe.
class WeightBinder {
 public:
  // `subject` is the file or folder that the message about all problems starts with.
  explicit WeightBinder(std::string subject) : problems_(std::move(subject)) {}

  // Adds files, unless they could not be opened. The names of their tensors below are `prefix` and
  // then the name in the file.
  absl::Status AddFiles(const std::string& prefix, absl::StatusOr<WeightFiles> files);

  // Returns the tensor of that name, or nullptr if no file has it.
  const FileTensor* Find(const std::string& name) const;
  // Returns the tensor if it is a matrix with at least one row and one column, or nullptr.
  const FileTensor* FindMatrix(const std::string& name) const;

  // Reads all bytes of a tensor that exists, as they are in the file.
  absl::Status ReadBytes(const std::string& name, absl::Span<char> target) const;

  // Takes the weight `spec` from the first of `places` that a file has. Leading dimensions of 1
  // that the weight does not have are ignored. It is a problem if there is no such tensor and the
  // weight is not optional, if the shape is wrong, or if the type is not a float type.
  void Bind(const WeightSpec& spec, absl::Span<const TensorPart> places);

  // Makes the weight `spec` of all `parts`, stacked in this order with equal numbers of rows. Adds
  // the same problems as Bind.
  void BindStacked(const WeightSpec& spec, absl::Span<const TensorPart> parts);

  // Makes the weight `spec` [1, columns] of a row of the first of `places` that a file has, less
  // the row `subtracted` of the same tensor, if there is one. Adds the same problems as Bind.
  void BindDifference(const WeightSpec& spec, absl::Span<const TensorPart> places,
                      std::optional<int64_t> subtracted);

  // Returns the names of the tensors that no weight was taken from, sorted.
  std::vector<std::string> Unbound() const;

  // Returns "<file>: tensor '<name>' F32 [2, 3]", for problems with a tensor that exists.
  std::string Show(const std::string& name) const;

  Problems& problems() { return problems_; }
  // Adds a problem, as Problems::Add does.
  template <class... Parts>
  void Refuse(const Parts&... parts) {
    problems_.Add(parts...);
  }
  // Adds the problem that a tensor is missing or is not as expected.
  template <class... Parts>
  void RefuseTensor(const std::string& name, const Parts&... expected) {
    const bool is_there = Find(name) != nullptr;
    Refuse(is_there ? Show(name) : absl::StrCat("tensor ", Quoted(name)),
           is_there ? ": expected " : ": missing; expected ", expected...);
  }

  // Moves the weights, the list of tensors and the warnings into `checkpoint` and leaves this
  // empty. Checks the digest of the files if `options` gives one (W15). If there were problems,
  // returns them all in one error, and `checkpoint` gets no weights.
  absl::Status Finish(const CheckpointOptions& options, Checkpoint& checkpoint);

 private:
  struct Entry {
    int file;
    std::string name;  // its name in the file
    FileTensor tensor;
  };

  // Returns the bytes of `part`, which must exist, for the weight named `weight` or for some of its
  // rows. `shape` is the expected shape. Returns nothing and adds a problem if the tensor does not
  // fit.
  std::optional<WeightPlace> Place(const std::string& weight, const TensorPart& part,
                                   const std::vector<int64_t>& shape);

  absl::Status CheckDigest(const std::string& expected) const;
  std::vector<CheckpointTensor> ListTensors() const;

  Problems problems_;
  std::vector<InputFile> files_;
  std::vector<std::string> warnings_;
  std::map<std::string, Entry> entries_;
  // Maps each tensor to the weights that it holds, by the index of their rows.
  std::map<std::string, std::multimap<int64_t, std::string>> bound_;
  WeightPlaces places_;
};

}  // namespace attendant
