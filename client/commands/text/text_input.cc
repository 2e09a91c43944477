#include "client/commands/text/text_input.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/files/file_bytes.h"
#include "client/flags/flag_kinds.h"

namespace attendant::client {
namespace {

constexpr char kPairSeparator = '\t';

// Empty lines are texts too, so that a row of the answer has the number of its line. A byte order
// mark, which editors on Windows put before the first line, is not part of it.
std::vector<std::string> Lines(absl::string_view bytes) {
  absl::ConsumePrefix(&bytes, "\xEF\xBB\xBF");
  absl::ConsumeSuffix(&bytes, "\n");
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(bytes, '\n')) {
    absl::ConsumeSuffix(&line, "\r");
    lines.emplace_back(line);
  }
  return lines;
}

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::error_code error;
  if (std::filesystem::is_fifo(path, error)) {  // such as <(command) of a shell
    std::ifstream stream(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok()) return file.status();
  return file->Read(0, file->size());
}

absl::Status SplitPairs(Texts& texts) {
  for (size_t i = 0; i < texts.texts.size(); ++i) {
    std::string& text = texts.texts[i];
    const std::vector<std::string> parts = absl::StrSplit(text, kPairSeparator);
    if (parts.size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("--pairs: expected two texts separated by a tab; got ", parts.size(),
                       " in text ", i, ", \"", Shortened(text, 60), "\""));
    }
    texts.pairs.push_back(parts[1]);
    text = parts[0];
  }
  return absl::OkStatus();
}

}  // namespace

Truncation SideOf(const ModelInfo& model) {
  return model.embeddings().truncates_left() ? Truncation::kLeft : Truncation::kRight;
}

Flags TextInput::TextFlags(const char* help) {
  FlagKind texts = TextsKind(texts_);
  texts.takes = FlagKind::Takes::kList;
  return {{"TEXT", "", help, std::move(texts)},
          {"--file", "FILE",
           "Read the texts from this file, one per line; - means stdin, the default without TEXT",
           TextKind(file_), "", "TEXT"}};
}

Flag TextInput::PairsFlag() {
  return {"--pairs", "",
          "Each line is a pair of texts, separated by a tab, which the model reads together",
          SwitchKind(pairs_)};
}

Flags TextInput::PromptFlags() {
  FlagKind prompt = {.read = [this](const std::string& text) {
    prompt_ = text;
    return true;
  }};
  return {{"--prompt-name", "NAME",
           "Prepend the model's prompt with this name to each text, such as query "
           "(`attendant-client tokenizer` lists them)",
           TextKind(prompt_name_, "the model's default prompt")},
          {"--prompt", "TEXT", "Prepend this to each text; \"\": no prompt", std::move(prompt), "",
           "--prompt-name"}};
}

Flag TextInput::TruncateFlag() {
  FlagKind side = ChoiceKind<Truncation>(
      truncation_,
      {{"right", Truncation::kRight}, {"left", Truncation::kLeft}, {"none", Truncation::kNone}});
  side.initial = "the side of the model's tokenizer";
  return {"--truncate", "",
          "Truncate texts to the model's max_sequence_length on the right or on the left; with "
          "none, the server computes them in full or refuses them",
          std::move(side)};
}

absl::StatusOr<Texts> TextInput::Read() const {
  Texts texts = {texts_, {}};
  if (texts_.empty()) {
    if (file_.empty() && isatty(STDIN_FILENO) != 0) {
      return absl::InvalidArgumentError(
          "expected a TEXT, --file FILE, or texts on stdin, one per line; got none");
    }
    const std::string path = file_.empty() ? "-" : file_;
    const absl::StatusOr<std::string> bytes = ReadAll(path);
    if (!bytes.ok()) return bytes.status();
    if (bytes->empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path == "-" ? "stdin" : path, ": expected texts, one per line; got none"));
    }
    texts.texts = Lines(*bytes);
  }
  const absl::Status status = pairs_ ? SplitPairs(texts) : absl::OkStatus();
  if (!status.ok()) return status;
  return texts;
}

std::string Shortened(const std::string& text, size_t most) {
  std::string shown;
  size_t characters = 0;
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    const bool begins = (code & 0xC0) != 0x80;
    if (begins && ++characters > most) return shown + "…";
    shown.push_back(code < 0x20 || code == 0x7F ? ' ' : byte);
  }
  return shown;
}

}  // namespace attendant::client
