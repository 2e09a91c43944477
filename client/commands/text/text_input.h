// TextInput, the flags that say which texts a command sends, and how they are tokenized.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/flags/flag.h"
#include "client/messages.h"

namespace attendant::client {

// Texts, and the second texts of pairs: none, or one for each text.
struct Texts {
  std::vector<std::string> texts;
  std::vector<std::string> pairs;
};

// Returns the side on which the model's tokenizer truncates texts.
Truncation SideOf(const ModelInfo& model);

class TextInput {
 public:
  // Return flags that write into this object. TextFlags: texts as arguments, in a file or on stdin.
  // PairsFlag: each of them holds two. PromptFlags: the text before each. TruncateFlag: the end at
  // which long texts are cut.
  Flags TextFlags(const char* help);
  Flag PairsFlag();
  Flags PromptFlags();
  Flag TruncateFlag();

  // Returns the texts: the arguments, the lines of the file, or the lines of stdin.
  // INVALID_ARGUMENT if there are none, or if one is no pair. Errors name the flag or the file.
  absl::StatusOr<Texts> Read() const;

  // Sets the fields of EncodeRequest or TokenizeRequest that the flags give for a model, except for
  // the texts.
  template <typename Request>
  void SetOptions(const ModelInfo& model, Request& request) const {
    request.prompt = prompt_;
    request.prompt_name = prompt_name_;
    request.truncation = truncation_.value_or(SideOf(model));
  }

 private:
  std::vector<std::string> texts_;
  std::string file_;
  bool pairs_ = false;
  std::optional<std::string> prompt_;
  std::string prompt_name_;
  std::optional<Truncation> truncation_;  // not set: on the side of the model's tokenizer
};

// Returns a text on one line of at most `most` characters, for a table.
std::string Shortened(const std::string& text, size_t most);

}  // namespace attendant::client
