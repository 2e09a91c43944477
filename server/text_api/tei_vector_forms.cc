// The routes of text-embeddings-inference that make vectors.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/http/json_answer.h"
#include "server/text_api/json_form.h"

namespace attendant::server {
namespace {

void FillVectors(Members& members, TextTask& task) {
  task.inputs = members.Inputs("inputs", &task.field);
  task.truncation = members.Truncation();
  task.prompt_name = members.Name("prompt_name");
}

}  // namespace

// [[…]]: a vector for each input.
TextWriter ReadTeiEmbed(Members& members, TextTask& task) {
  FillVectors(members, task);
  task.normalize = members.Flag("normalize", true);
  task.dimensions = members.Count("dimensions");
  return [](const std::shared_ptr<const DoneText>& done) { return VectorsAnswer("[", done, "]"); };
}

// [[[…]]]: for each input, the last layer's output for each token.
TextWriter ReadTeiEmbedAll(Members& members, TextTask& task) {
  FillVectors(members, task);
  task.wish = TextWish::kTokenVectors;
  return [](const std::shared_ptr<const DoneText>& done) {
    // An element of the answer is a token, because the tokens of one input may be many.
    struct Element {
      bool opens, closes;  // the list of its input
      int64_t row;         // negative: the input has no tokens
    };
    std::vector<Element> elements;
    int64_t row = 0;
    for (const int64_t tokens : done->result.tokens) {
      if (tokens == 0) elements.push_back({true, true, -1});
      for (int64_t i = 0; i < tokens; ++i) elements.push_back({i == 0, i + 1 == tokens, row++});
    }
    const size_t count = elements.size();
    const auto append = [done, elements = std::move(elements)](size_t index, std::string* to) {
      const Element& element = elements[index];
      if (element.opens) *to += '[';
      if (element.row >= 0) AppendNumbers(done->Row(static_cast<size_t>(element.row)), to);
      if (element.closes) *to += ']';
    };
    return ListAnswer("[", count, append, "]");
  };
}

// [[{"index", "value"}]]: for each input, the words of the vocabulary that count.
TextWriter ReadTeiEmbedSparse(Members& members, TextTask& task) {
  FillVectors(members, task);
  task.wish = TextWish::kSparse;
  return [](const std::shared_ptr<const DoneText>& done) {
    const auto append = [done](size_t index, std::string* to) {
      *to += '[';
      for (const SparseEntry& entry : done->result.sparse[index]) {
        absl::StrAppend(to, to->back() == '[' ? "" : ",", "{\"index\":", entry.word, ",\"value\":");
        AppendNumber(entry.weight, to);
        *to += '}';
      }
      *to += ']';
    };
    return ListAnswer("[", done->result.sparse.size(), append, "]");
  };
}

// […]: the cosine similarity of each sentence's vector to one more sentence, the last input.
TextWriter ReadTeiSimilarity(Members& members, TextTask& task) {
  Members inputs = members.Object("inputs");
  task.field = "inputs.sentences";
  task.inputs = inputs.Texts("sentences");
  task.inputs.push_back({inputs.Text("source_sentence")});
  task.normalize = true;
  task.truncation = members.Truncation();
  task.prompt_name = members.Name("prompt_name");
  return [](const std::shared_ptr<const DoneText>& done) {
    const size_t sentences = done->inputs() - 1;
    const auto append = [done, sentences](size_t index, std::string* to) {
      const auto one = done->Row(index), other = done->Row(sentences);
      double cosine = 0;
      for (size_t i = 0; i < one.size(); ++i) cosine += double{one[i]} * double{other[i]};
      AppendNumber(static_cast<float>(cosine), to);
    };
    return ListAnswer("[", sentences, append, "]");
  };
}

}  // namespace attendant::server
