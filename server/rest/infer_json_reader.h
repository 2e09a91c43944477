// InferJsonReader, which reads the JSON document of an inference request from its first character
// to its last.
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

// Events of the parser, for which derived classes get those that mean something, with the place
// where they are. Refuses a document whose shape is not the protocol's, whose objects have a key
// twice or more than 64 keys, or that is nested deeper than 32. Passes over members that the
// protocol does not know, and those that are null.
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

  // Reads the first `bytes` of the slices. INVALID_ARGUMENT: what is wrong, and where. Other errors
  // are those of derived classes.
  absl::Status Read(const MessageSlices& slices, int64_t bytes);

  bool null() override { return Scalar({}); }
  bool boolean(bool value) override;
  bool number_integer(number_integer_t value) override;
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t value, const string_t& text) override;
  bool string(string_t& value) override;
  bool binary(binary_t&) override { return false; }  // there is none in JSON
  bool start_object(std::size_t) override { return Enter(true); }
  bool key(string_t& name) override;
  bool end_object() override { return Leave(); }
  bool start_array(std::size_t) override { return Enter(false); }
  bool end_array() override { return Leave(); }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override;

 protected:
  // An element, or the member called key() of an object, is this value; of a parameter that is a
  // list or an object, kNested stands for all of it. Each returns OK or INVALID_ARGUMENT, what is
  // wrong without the place; any other error is passed on as it is.
  virtual absl::Status OnScalar(At at, const InferValue& value) = 0;
  // Into a list or an object, and out of it.
  virtual absl::Status OnEnter(At) { return absl::OkStatus(); }
  virtual absl::Status OnLeave(At) { return absl::OkStatus(); }

  const std::string& key() const { return frames_.back().key; }
  // The place that holds the current one, such as kInput for kData's outermost list.
  At outer() const { return frames_.size() < 2 ? At::kRoot : frames_[frames_.size() - 2].at; }
  JsonSource& text() { return *text_; }
  // Reads the bytes [begin, end) of the slices, which have been read before, once more, as the
  // member `key` of the current object. Errors are those of Read.
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
  // The place is put before what is wrong.
  bool NoteHere(const absl::Status& status);
  std::string Place() const;

  const MessageSlices* slices_ = nullptr;
  JsonSource* text_ = nullptr;  // while it is read
  std::vector<Frame> frames_;
  absl::Status status_;
};

}  // namespace attendant::server
