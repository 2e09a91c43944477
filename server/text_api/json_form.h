// JsonForm, what the forms of all routes share, and the makers of each of them.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/text_api/members.h"
#include "server/text_api/text_form.h"

namespace attendant::server {

// A task and its result, for an answer that is written while it is sent.
struct DoneText {
  TextTask task;
  TextResult result;

  size_t inputs() const { return task.inputs.size(); }
  absl::Span<const float> Row(size_t index) const {
    const auto width = static_cast<size_t>(result.width);
    return absl::MakeConstSpan(result.numbers).subspan(index * width, width);
  }
};

class JsonForm : public TextForm {
 public:
  absl::StatusOr<TextTask> Read(const TextRequest& request) final {
    Members members(request);
    return ReadMembers(request, members);
  }
  // Read, of members that have been parsed.
  absl::StatusOr<TextTask> ReadMembers(const TextRequest& request, Members& members);
  absl::StatusOr<HttpAnswer> Write(TextTask task, TextResult result) final;

 protected:
  // Fills the task, whose `model` is set. Errors are those of the members.
  virtual void Fill(Members& members, TextTask& task) = 0;
  // The numbers of the result are finite. The answer does not refer to the form.
  virtual HttpAnswer Answer(std::shared_ptr<const DoneText> done) const = 0;
};

std::unique_ptr<JsonForm> MakeOpenAiEmbeddings();
std::unique_ptr<JsonForm> MakeCohereEmbed();
std::unique_ptr<JsonForm> MakeRerank();  // of Jina and Cohere
std::unique_ptr<JsonForm> MakeTeiEmbed();
std::unique_ptr<JsonForm> MakeTeiEmbedAll();
std::unique_ptr<JsonForm> MakeTeiEmbedSparse();
std::unique_ptr<JsonForm> MakeTeiSimilarity();
std::unique_ptr<JsonForm> MakeTeiPredict();
std::unique_ptr<JsonForm> MakeTeiRerank();
std::unique_ptr<JsonForm> MakeTeiTokenize();
std::unique_ptr<JsonForm> MakeEntities();

// Sets prompts for what the texts are for: Cohere's and NVIDIA's input types and Jina's tasks.
void ReadPurpose(Members& members, const char* name, TextTask& task);

// The places of `scores` from the highest score to the lowest, at most `most` of them.
std::vector<size_t> BestFirst(absl::Span<const float> scores, size_t most);

// The bytes [begin, end) of a text, and those of characters that are in it in part.
std::string_view Slice(std::string_view text, size_t begin, size_t end);

}  // namespace attendant::server
