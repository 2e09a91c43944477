// Tokenizes what comes on stdin, for the comparisons of tests/text/run.
//   tokenize TOKENIZER_JSON|FOLDER [--max-length N] [--left] [--no-special] [--lowercase] [--time
//   ROUNDS] [--vocabulary]
// A request is the number of texts, 1 or 2, and each of them after its size; an answer is -1 for an
// error, or the number of tokens and their ids, type ids, texts, and places in code points and
// bytes. All are 32-bit little-endian numbers. With --time, prints the nanoseconds of each round
// instead; with --vocabulary, the text of each id after its size, up to one id beyond the last.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/text/tokenizer.h"
#include "server/text/tokenizer_files.h"

namespace {

using attendant::text::EncodeOptions;
using attendant::text::Encoding;
using attendant::text::Tokenizer;

bool ReadNumber(uint32_t& number) { return std::fread(&number, sizeof(number), 1, stdin) == 1; }

bool ReadTexts(std::vector<std::string>& texts) {
  uint32_t count = 0, size = 0;
  if (!ReadNumber(count)) return false;
  texts.assign(count, "");
  for (std::string& text : texts) {
    if (!ReadNumber(size)) return false;
    text.resize(size);
    if (std::fread(text.data(), 1, size, stdin) != size) return false;
  }
  return true;
}

absl::StatusOr<Encoding> Encode(const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                                const EncodeOptions& options) {
  if (texts.size() == 2) return tokenizer.EncodePair(texts[0], texts[1], options);
  return tokenizer.Encode(texts.at(0), options);
}

void Write(const absl::StatusOr<Encoding>& encoding) {
  std::vector<int32_t> numbers;
  if (!encoding.ok()) {
    numbers.push_back(-1);
  } else {
    numbers.push_back(static_cast<int32_t>(encoding->ids.size()));
    for (size_t i = 0; i < encoding->ids.size(); ++i) {
      for (const uint32_t number :
           {encoding->ids[i], encoding->type_ids[i], uint32_t{encoding->text_of[i]},
            encoding->code_points[i].begin, encoding->code_points[i].end, encoding->bytes[i].begin,
            encoding->bytes[i].end}) {
        numbers.push_back(static_cast<int32_t>(number));
      }
    }
  }
  std::fwrite(numbers.data(), sizeof(numbers[0]), numbers.size(), stdout);
}

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

// Reads the files of a folder that tokenizers are loaded from.
attendant::text::TokenizerFiles ReadFiles(const std::string& folder) {
  attendant::text::TokenizerFiles files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string kind = entry.path().extension().string();
    if (kind != ".model" && kind != ".json" && kind != ".txt") continue;
    files[entry.path().filename().string()] = ReadFile(entry.path().string()).value_or("");
  }
  return files;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Load(
    const std::string& path, const attendant::text::TokenizerOverrides& overrides) {
  if (!std::filesystem::is_directory(path)) {
    return Tokenizer::Load(ReadFile(path).value_or(""), overrides);
  }
  absl::StatusOr<attendant::text::EffectiveTokenizer> effective =
      attendant::text::LoadTokenizerFiles(ReadFiles(path));
  if (!effective.ok()) return effective.status();
  for (const std::string& note : effective->notes) std::cerr << note << "\n";
  return std::move(effective->tokenizer);
}

void Time(const Tokenizer& tokenizer, EncodeOptions options, int rounds) {
  std::vector<std::vector<std::string>> requests(1);
  while (ReadTexts(requests.back())) requests.emplace_back();
  requests.pop_back();
  options.places = false;  // which encode_batch_fast leaves out too
  for (; rounds > 0; --rounds) {
    size_t tokens = 0;
    const auto start = std::chrono::steady_clock::now();
    for (const std::vector<std::string>& texts : requests) {
      const absl::StatusOr<Encoding> encoding = Encode(tokenizer, texts, options);
      tokens += encoding.ok() ? encoding->ids.size() : 0;
    }
    const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - start;
    std::printf("%lld %zu\n", static_cast<long long>(time.count()), tokens);
  }
}

void WriteVocabulary(const Tokenizer& tokenizer) {
  for (uint32_t id = 0; id <= tokenizer.id_limit(); ++id) {
    const std::string text = tokenizer.TokenText(id);
    const uint32_t size = static_cast<uint32_t>(text.size());
    std::fwrite(&size, sizeof(size), 1, stdout);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  EncodeOptions options;
  attendant::text::TokenizerOverrides overrides;
  int rounds = 0;
  bool vocabulary = false;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--max-length") options.max_length = std::strtoul(argv[++i], nullptr, 10);
    if (argument == "--left") options.truncation_side = attendant::text::TruncationSide::kLeft;
    if (argument == "--no-special") options.add_special_tokens = false;
    if (argument == "--lowercase") overrides.lowercase = true;
    if (argument == "--vocabulary") vocabulary = true;
    if (argument == "--time") rounds = std::atoi(argv[++i]);
  }
  const auto tokenizer = Load(argv[1], overrides);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status().message() << "\n";
    return 3;
  }
  if (rounds > 0) {
    Time(**tokenizer, options, rounds);
    return 0;
  }
  if (vocabulary) WriteVocabulary(**tokenizer);
  std::vector<std::string> texts;
  while (!vocabulary && ReadTexts(texts)) Write(Encode(**tokenizer, texts, options));
  return 0;
}
