// The readers of all text routes, and their shared helpers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/text_api/members.h"
#include "server/text_api/text_form.h"

namespace attendant::server {

// See TextRoute::read.
TextWriter ReadOpenAiEmbeddings(Members& members, TextTask& task);
TextWriter ReadCohereEmbed(Members& members, TextTask& task);
TextWriter ReadRerank(Members& members, TextTask& task);  // Jina and Cohere
TextWriter ReadTeiEmbed(Members& members, TextTask& task);
TextWriter ReadTeiEmbedAll(Members& members, TextTask& task);
TextWriter ReadTeiEmbedSparse(Members& members, TextTask& task);
TextWriter ReadTeiSimilarity(Members& members, TextTask& task);
TextWriter ReadTeiPredict(Members& members, TextTask& task);
TextWriter ReadTeiRerank(Members& members, TextTask& task);
TextWriter ReadTeiTokenize(Members& members, TextTask& task);
TextWriter ReadEntities(Members& members, TextTask& task);

// Sets prompts according to the purpose of the texts: input types of Cohere and NVIDIA, tasks of
// Jina.
void ReadPurpose(Members& members, const char* name, TextTask& task);

// Returns the indices of at most `most` scores, highest first.
std::vector<size_t> BestFirst(absl::Span<const float> scores, size_t most);

// Returns the characters of a text that the tokens `first` to `last` cover, whole or in part.
std::string WordOf(const std::string& text, const v1::TextTokens& tokens, int first, int last);

}  // namespace attendant::server
