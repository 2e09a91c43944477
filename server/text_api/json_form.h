// The readers of all text routes, and their shared helpers.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/text_api/members.h"
#include "server/text_api/text_form.h"

namespace attendant::server {

// See TextRoute::read.
TextWriter ReadOpenAiEmbeddings(Members& members, TextTask& task);
TextWriter ReadCohereEmbed(Members& members, TextTask& task);
TextWriter ReadFirstCohereEmbed(Members& members, TextTask& task);  // of the first API
TextWriter ReadRerank(Members& members, TextTask& task);            // Jina, Cohere and Voyage
TextWriter ReadTeiEmbed(Members& members, TextTask& task);
TextWriter ReadTeiEmbedAll(Members& members, TextTask& task);
TextWriter ReadTeiEmbedSparse(Members& members, TextTask& task);
TextWriter ReadTeiSimilarity(Members& members, TextTask& task);
TextWriter ReadTeiPredict(Members& members, TextTask& task);
TextWriter ReadTeiRerank(Members& members, TextTask& task);
TextWriter ReadTeiTokenize(Members& members, TextTask& task);
TextWriter ReadEntities(Members& members, TextTask& task);
TextWriter ReadOllamaEmbed(Members& members, TextTask& task);
TextWriter ReadOllamaEmbeddings(Members& members, TextTask& task);  // superseded by the other one

// The JSON form of a vector: its numbers, or a bit for each number, in a list or in base64.
struct VectorForm {
  enum class Type { kFloat, kBinary, kUbinary } type = Type::kFloat;
  bool base64 = false;
};

// The names of vector forms in the APIs of Cohere, Jina and Voyage.
inline constexpr std::initializer_list<absl::string_view> kVectorForms = {"float", "base64",
                                                                          "binary", "ubinary"};
VectorForm VectorFormOf(absl::string_view name);  // one of kVectorForms

// kBinary and kUbinary write the bytes of sentence-transformers' precisions of these names: a bit
// is set if the number is above 0, the first is the highest of its byte, and kBinary subtracts 128.
void AppendVector(VectorForm form, absl::Span<const float> vector, std::string* to);

// Returns the vectors of all inputs as lists of numbers between `head` and `tail`.
HttpAnswer VectorsAnswer(const std::string& head, const std::shared_ptr<const DoneText>& done,
                         const std::string& tail);

// Voyage's name for "truncate". In `parameters` of other routes, where transformers has strategies
// such as "longest_first" under this name, it is ignored.
inline constexpr char kVoyageTruncation[] = "truncation";

// Sets prompts according to the purpose of the texts: input types of Cohere, NVIDIA and Voyage,
// tasks of Jina.
void ReadPurpose(Members& members, const char* name, TextTask& task);

// Returns the indices of at most `most` scores, highest first.
std::vector<size_t> BestFirst(absl::Span<const float> scores, size_t most);

// Returns the characters of a text that the tokens `first` to `last` cover, whole or in part.
std::string WordOf(const std::string& text, const v1::TextTokens& tokens, int first, int last);

}  // namespace attendant::server
