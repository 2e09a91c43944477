// TextCollector: from the responses to the parts of a text task to its result.
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

// Makes scores of a row of a head's outputs, in place. kUnknown: a sigmoid of a single class, else
// a softmax.
void ApplyScores(ScoreFunction function, absl::Span<float> outputs);

// Not thread-safe.
class TextCollector {
 public:
  // `name` is the model's as the caller knows it. Throws std::bad_alloc.
  TextCollector(const TextTask& task, const ServedModel& model, const std::string& name);

  // Bytes of the result, and about as many as its longest form in JSON has. Both grow with the
  // parts, but those of kVectors and kScores are known from the beginning.
  int64_t bytes() const { return bytes_; }
  int64_t answer_bytes() const { return answer_bytes_; }

  // Makes room for what is known from the beginning. Throws std::bad_alloc.
  void Begin();
  // Each part once.
  void Take(const TextPart& part, Response response);
  // The vectors of a query that was read alone, before any part of documents.
  void TakeQuery(Response response);
  const QueryTensor& query() const { return query_; }
  // Each input once. For kTokens.
  void TakeTokens(size_t input, v1::TextTokens tokens);
  // Once all inputs have been taken.
  TextResult Finish();

 private:
  void TakeRows(const TextPart& part, ResponseTensor& tensor);
  void TakeTokenRows(const TextPart& part, ResponseTensor& tensor);
  void TakeScores(const TextPart& part, ResponseTensor& tensor);
  // Leaves out the tokens whose vectors are zeros.
  void DropEmptyRows(size_t input);
  void TakeSparse(const TextPart& part, SparseResponse& sparse);
  void Grow(int64_t bytes, int64_t answer_bytes);

  const TextTask& task_;
  ScoreFunction function_ = ScoreFunction::kPlain;
  const bool is_multi_vector_;
  QueryTensor query_;
  TextResult result_;
  // kTokenVectors, kEntities: of each input, until all are there.
  std::vector<std::vector<float>> token_rows_;
  int64_t bytes_ = 0;
  int64_t answer_bytes_ = 0;
};

}  // namespace attendant::server
