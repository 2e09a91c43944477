// InferJsonReader, a streaming reader of an inference request's JSON document.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/inference/infer_value.h"
#include "server/rest/json_source.h"
#include "server/wire/payload.h"

namespace attendant::server {

// Handles parser events, and passes meaningful ones to derived classes with their place in the
// document. Refuses documents of another shape, with duplicate keys, with more than 64 keys in an
// object, or nested deeper than 32. Skips null members and members that the protocol does not
// define.
class InferJsonReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  enum class At {
    kRoot,        // {"id": …, "parameters": …, "inputs": …, "outputs": …}
    kInputs,      // a list of
    kInput,       // {"name": …, "datatype": …, "shape": …, "parameters": …, "data": …}
    kShape,       // a list of numbers
    kData,        // a list of elements, or of such lists
    kOutputs,     // a list of
    kOutput,      // {"name": …, "parameters": …}
    kParameters,  // of the request, of an input or of an output
    kSkipped
  };

  // Reads the first `bytes` of the slices. Returns INVALID_ARGUMENT with the problem and its place,
  // or the errors of derived classes.
  absl::Status Read(const MessageSlices& slices, int64_t bytes);

  bool null() override { return Scalar({}); }
  bool boolean(bool value) override;
  bool number_integer(number_integer_t value) override;
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t value, const string_t& text) override;
  bool string(string_t& value) override;
  bool binary(binary_t&) override { return false; }  // not part of JSON
  bool start_object(std::size_t) override { return Enter(true); }
  bool key(string_t& name) override;
  bool end_object() override { return Leave(); }
  bool start_array(std::size_t) override { return Enter(false); }
  bool end_array() override { return Leave(); }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override;

 protected:
  // Called with an element, or with the member key() of an object; for a parameter that is a list
  // or an object, kNested represents it. Returns OK, or INVALID_ARGUMENT with the problem but not
  // the place; other errors are passed on.
  virtual absl::Status OnScalar(At at, const InferValue& value) = 0;
  // Called when entering and leaving a list or an object.
  virtual absl::Status OnEnter(At) { return absl::OkStatus(); }
  virtual absl::Status OnLeave(At) { return absl::OkStatus(); }

  const std::string& key() const { return frames_.back().key; }
  // Returns the enclosing place, such as kInput for kData's outermost list.
  At outer() const { return frames_.size() < 2 ? At::kRoot : frames_[frames_.size() - 2].at; }
  JsonSource& text() { return *text_; }
  // Reads the bytes [begin, end) of the slices again, as the member `key` of the current object.
  // Errors are those of Read.
  void ReadAgain(const char* key, int64_t begin, int64_t end);

 private:
  struct Frame {
    At at;
    std::string key = {};
    std::set<std::string> keys = {};
    int64_t elements = 0;
  };

  bool Scalar(const InferValue& value);
  bool Enter(bool object);
  bool Leave();
  bool Note(const absl::Status& status);
  // Prefixes the place to the message.
  bool NoteHere(const absl::Status& status);
  std::string Place() const;

  const MessageSlices* slices_ = nullptr;
  JsonSource* text_ = nullptr;  // while reading
  std::vector<Frame> frames_;
  absl::Status status_;
};

}  // namespace attendant::server
