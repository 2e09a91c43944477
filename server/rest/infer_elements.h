// InferElements, the elements of one input as JSON has them: how they are nested, and their bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "inference/inference_service.pb.h"
#include "server/inference/datatypes.h"
#include "server/inference/infer_value.h"
#include "server/wire/payload.h"

namespace attendant::server {

// Follows the lists of `data` from its outermost one on. Not thread-safe.
class InferElements {
 public:
  using Shape = google::protobuf::RepeatedField<int64_t>;

  // Before the outermost list: packs the elements, of which there are at most `most`, as those of a
  // type that WriterOf has. Throws std::bad_alloc.
  void PackAs(const Datatype& type, int64_t most);

  // The same for texts, which are packed as raw BYTES: each one's length, 4 bytes, and its bytes.
  void PackTexts();

  void Enter();
  // Returns INVALID_ARGUMENT, without the place, if the value is not one of the type, or there are
  // more texts than a request may have.
  absl::Status Add(const InferValue& value);
  void Leave();
  bool done() const { return depth() == 0; }
  int64_t depth() const { return static_cast<int64_t>(counts_.size()); }  // of open lists

  // Returns INVALID_ARGUMENT, without the place, unless the elements are as many as the shape says,
  // in one list or nested as it says.
  absl::Status CheckFit(const Shape& shape) const;
  int64_t count() const { return count_; }
  bool is_packed() const { return type_ != nullptr || is_text_; }
  Payload packed() const;

 private:
  absl::Status AddText(const InferValue& value);

  std::vector<int64_t> counts_;  // of the open lists, from the outermost on
  std::vector<int64_t> sizes_;   // of lists at each depth; -1: none has ended
  size_t leaves_ = 0;            // the depth of elements; 0: none came
  int64_t count_ = 0;
  bool regular_ = true;

  const Datatype* type_ = nullptr;  // null: the elements are only counted
  ElementWriter write_ = nullptr;
  int64_t width_ = 0;
  Payload packed_;
  char* to_ = nullptr;
  char* end_ = nullptr;
  bool is_text_ = false;
  std::string texts_;  // packed
};

// Returns the number of elements of a shape; the largest number if there are more.
int64_t ElementsOf(const InferElements::Shape& shape);

}  // namespace attendant::server
