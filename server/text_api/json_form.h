// The readers of all routes, and what they share.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/text_api/members.h"
#include "server/text_api/text_form.h"

namespace attendant::server {

// As TextRoute::read.
TextWriter ReadOpenAiEmbeddings(Members& members, TextTask& task);
TextWriter ReadCohereEmbed(Members& members, TextTask& task);
TextWriter ReadRerank(Members& members, TextTask& task);  // of Jina and Cohere
TextWriter ReadTeiEmbed(Members& members, TextTask& task);
TextWriter ReadTeiEmbedAll(Members& members, TextTask& task);
TextWriter ReadTeiEmbedSparse(Members& members, TextTask& task);
TextWriter ReadTeiSimilarity(Members& members, TextTask& task);
TextWriter ReadTeiPredict(Members& members, TextTask& task);
TextWriter ReadTeiRerank(Members& members, TextTask& task);
TextWriter ReadTeiTokenize(Members& members, TextTask& task);
TextWriter ReadEntities(Members& members, TextTask& task);

// Sets prompts for what the texts are for: Cohere's and NVIDIA's input types and Jina's tasks.
void ReadPurpose(Members& members, const char* name, TextTask& task);

// The places of `scores` from the highest score to the lowest, at most `most` of them.
std::vector<size_t> BestFirst(absl::Span<const float> scores, size_t most);

// The characters of a text that the tokens from `first` to `last` contain, whole or in part.
std::string WordOf(const std::string& text, const v1::TextTokens& tokens, int first, int last);

}  // namespace attendant::server
