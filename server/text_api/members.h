// Members, which reads the members of a request's JSON object and keeps the first error.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/text/base/json_tree.h"
#include "server/text_api/text_form.h"
#include "server/text_api/text_task.h"

namespace attendant::server {

// Null members count as absent, and unknown members are ignored. After an error, results are
// arbitrary: check `status` before using them. Not thread-safe.
class Members {
 public:
  // Reads a request's body. Options missing from it are taken from its member "parameters", where
  // clients of Hugging Face's Inference API put them.
  explicit Members(const TextRequest& request);

  // The first error, which names its member.
  const absl::Status& status() const { return *status_; }

  bool Has(const char* name) const { return Find(name).value.has_value(); }
  bool HasObject(const char* name) const;
  bool Flag(const char* name, bool otherwise);
  std::optional<int64_t> Count(const char* name);  // at least 1
  std::string Name(const char* name);              // empty if absent
  // In lower case; the first choice if absent.
  std::string Choice(const char* name, std::initializer_list<absl::string_view> choices);
  std::optional<std::vector<std::string>> Names(const char* name);  // a list, which may be empty
  // Reads "truncate", or else `other` unless null, a flag or "NONE", "START" or "END", and
  // "truncation_direction". Nullopt: on the model's side.
  std::optional<v1::Truncation> Truncation(const char* other = nullptr);
  // Reads an object, without "parameters" of its own. Absence is an error.
  Members Object(const char* name);

  // Reads a text, or with `object` also an object with a member "text".
  std::string Text(const char* name, bool object = false);
  // Reads a list of texts, or with `objects` of objects with a member "text".
  std::vector<TextInput> Texts(const char* name, bool objects = false);
  // Reads a list of objects with "content", a list of one {"type": "text", "text": …}.
  std::vector<TextInput> Contents(const char* name);
  // Reads a text or a list of texts. Sets `batch`, unless null, to whether it is a list.
  std::vector<TextInput> TextOrTexts(const char* name, bool* batch);
  // Reads a text, ids, or a list of texts, ids and objects with a member "text". Sets `field` to
  // the name of the inputs for messages: "input", or "input[0]" for a list of the ids of one.
  std::vector<TextInput> Inputs(const char* name, std::string* field);
  // Reads a text, [a, b], or a list of [a] and [a, b].
  std::vector<TextInput> Pairs(const char* name, bool* batch);

  // Records "<name>: <why>" if there is such a member.
  void RefuseGiven(const char* name, const char* why);
  // Records an error of a member.
  void Refuse(const std::string& name, const std::string& expected, const std::string& got,
              TextErrorKind kind = TextErrorKind::kInvalid);

 private:
  struct Member {
    std::optional<text::JsonValue> value;  // nullopt if absent
    std::string field;

    bool is_string() const { return value.has_value() && value->is_string(); }
  };
  using Take = TextInput (Members::*)(const Member& value);

  Members(const Member& object, const Members& outer);

  Member Find(const char* name) const;
  Member Given(const char* name);  // absence is an error
  // Returns whether a member is a list of at least one element and as many as the limit at most;
  // records an error unless it is absent.
  bool CheckList(const Member& member, const char* expected);
  // Reads such a list.
  std::vector<TextInput> Each(const Member& list, const char* expected, Take take);
  TextInput TakeText(const Member& value);
  TextInput TakeIds(const Member& value);
  TextInput TakePair(const Member& value);
  TextInput TakeDocument(const Member& value);  // a text, or an object with a text
  TextInput TakeContent(const Member& value);
  TextInput TakeInput(const Member& value);  // ids or a document
  void Refuse(const Member& value, const std::string& expected);

  TextLimits limits_;
  std::shared_ptr<absl::Status> status_;  // shared with nested objects
  std::shared_ptr<const text::JsonTree> tree_;
  std::string prefix_;
  std::optional<text::JsonValue> object_, parameters_;
};

}  // namespace attendant::server
