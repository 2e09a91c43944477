// TextCollector, which builds the result of a text task from the responses to its parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/checkpoint/files/tokenization.h"
#include "server/execution/response.h"
#include "server/models/served_model.h"
#include "server/text_api/text_task.h"
#include "server/text_calls/text_parts.h"

namespace attendant::server {

// Turns a head's outputs into scores, in place. kUnknown: a sigmoid for a single class, otherwise a
// softmax.
void ApplyScores(ScoreFunction function, absl::Span<float> outputs);

// Not thread-safe.
class TextCollector {
 public:
  // `name` is the model's name as given by the client. Throws std::bad_alloc.
  TextCollector(const TextTask& task, const ServedModel& model, const std::string& name);

  // Bytes of the result, and about as many as its longest JSON form. Both grow with the parts,
  // except for kVectors and kScores, where they are known in advance.
  int64_t bytes() const { return bytes_; }
  int64_t answer_bytes() const { return answer_bytes_; }

  // Allocates the parts of the result with a known size. Throws std::bad_alloc.
  void Begin();
  // Call once for each part.
  void Take(const TextPart& part, Response response);
  // Takes the vectors of a separate query, before any part of documents.
  void TakeQuery(Response response);
  const CheckedTensor& query() const { return query_; }
  // For kTokens; call once for each input.
  void TakeTokens(size_t input, v1::TextTokens tokens);
  // Call after all inputs.
  TextResult Finish();

 private:
  void TakeRows(const TextPart& part, const ResponseTensor& tensor);
  void TakeTokenRows(const TextPart& part, const ResponseTensor& tensor);
  // Removes the tokens with zero vectors.
  void DropEmptyRows(size_t input);
  void TakeSparse(const TextPart& part, SparseResponse& sparse);
  void Grow(int64_t bytes, int64_t answer_bytes);

  const TextTask& task_;
  ScoreFunction function_ = ScoreFunction::kPlain;
  const bool is_multi_vector_;
  CheckedTensor query_;
  TextResult result_;
  // kTokenVectors, kEntities: rows per input, until all are present.
  std::vector<std::vector<float>> token_rows_;
  int64_t bytes_ = 0;
  int64_t answer_bytes_ = 0;
};

}  // namespace attendant::server
