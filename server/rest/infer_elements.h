// InferElements, the elements of one input in JSON: their nesting and their bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "inference/inference_service.pb.h"
#include "server/inference/infer_value.h"
#include "server/wire/payload.h"

namespace attendant::server {

// Follows the lists of `data`, starting with the outermost. Not thread-safe.
class InferElements {
 public:
  using Shape = google::protobuf::RepeatedField<int64_t>;

  // Call before the outermost list. Packs the elements, at most `most`, in a type known to
  // WriterOf. Throws std::bad_alloc.
  void PackAs(const Datatype& type, int64_t most);

  // The same for texts, packed as raw BYTES: a 4-byte length and the bytes of each.
  void PackTexts();

  void Enter();
  // Returns INVALID_ARGUMENT, without the place, if the value does not fit the type or there are
  // too many texts for a request.
  absl::Status Add(const InferValue& value);
  void Leave();
  bool done() const { return depth() == 0; }
  int64_t depth() const { return static_cast<int64_t>(counts_.size()); }  // of open lists

  // Returns INVALID_ARGUMENT, without the place, unless the elements match the shape, as a flat
  // list or nested.
  absl::Status CheckFit(const Shape& shape) const;
  int64_t count() const { return count_; }
  bool is_packed() const { return type_ != nullptr || is_text_; }
  Payload packed() const;

 private:
  absl::Status AddText(const InferValue& value);

  std::vector<int64_t> counts_;  // of open lists, outermost first
  std::vector<int64_t> sizes_;   // of lists at each depth; -1 if none has ended
  size_t leaves_ = 0;            // depth of elements; 0 if there are none
  int64_t count_ = 0;
  bool regular_ = true;

  const Datatype* type_ = nullptr;  // null if elements are only counted
  ElementWriter write_ = nullptr;
  int64_t width_ = 0;
  Payload packed_;
  char* to_ = nullptr;
  char* end_ = nullptr;
  bool is_text_ = false;
  std::string texts_;  // packed
};

// Returns the number of elements in a shape, or the largest number on overflow.
int64_t ElementsOf(const InferElements::Shape& shape);

}  // namespace attendant::server
