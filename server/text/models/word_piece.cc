// WordPiece: the longest tokens from the left; and WordLevel: a word is a token, or unknown.
#include "absl/strings/str_cat.h"
#include "server/text/models/model.h"

namespace attendant::text {
namespace {

// Each of a word's bytes may take as many steps as the word is long.
constexpr uint32_t kMaxWordCharacters = 1000;

class WordPiece : public Model {
 public:
  WordPiece(uint32_t unk_id, absl::string_view continuing_prefix, uint32_t max_characters,
            const Vocabulary& vocabulary)
      : Model(ByteTrie(vocabulary)),
        unk_id_(unk_id),
        max_characters_(max_characters),
        continued_(vocabulary_.Walk(vocabulary_.root(), continuing_prefix)) {}

  size_t scratch_bytes() const override { return 5; }

  void Tokenize(ItemSpan piece, ModelScratch& scratch,
                std::vector<ModelToken>& tokens) const override {
    const size_t before = tokens.size();
    if (piece.size() <= max_characters_ && Split(piece, scratch, tokens)) return;
    tokens.resize(before);
    tokens.push_back({unk_id_, 0, static_cast<uint32_t>(piece.size())});
  }

 private:
  bool Split(ItemSpan piece, ModelScratch& scratch, std::vector<ModelToken>& tokens) const {
    PieceBytes& word = scratch.bytes;
    word.Assign(piece);
    const absl::string_view bytes = word.bytes();
    for (size_t begin = 0; begin < bytes.size();) {
      ByteTrie::Node node = begin == 0 ? vocabulary_.root() : continued_;
      uint32_t id = kNoId;
      size_t end = begin;
      for (size_t at = begin; node != ByteTrie::kNone && at < bytes.size();) {
        node = vocabulary_.Child(node, static_cast<unsigned char>(bytes[at++]));
        if (node == ByteTrie::kNone) break;
        if (vocabulary_.Value(node) != ByteTrie::kNoValue) {
          id = vocabulary_.Value(node);
          end = at;
        }
      }
      if (id == kNoId) return false;
      tokens.push_back({id, word.ItemAt(begin), word.ItemAt(end - 1) + 1});
      begin = end;
    }
    return true;
  }

  const uint32_t unk_id_, max_characters_;
  const ByteTrie::Node continued_;
};

class WordLevel : public Model {
 public:
  WordLevel(uint32_t unk_id, const Vocabulary& vocabulary)
      : Model(ByteTrie(vocabulary)), unk_id_(unk_id) {}

  size_t scratch_bytes() const override { return 5; }

  void Tokenize(ItemSpan piece, ModelScratch& scratch,
                std::vector<ModelToken>& tokens) const override {
    PieceBytes& word = scratch.bytes;
    word.Assign(piece);
    const uint32_t id = vocabulary_.Find(word.bytes());
    tokens.push_back({id == kNoId ? unk_id_ : id, 0, static_cast<uint32_t>(piece.size())});
  }

 private:
  const uint32_t unk_id_;
};

absl::StatusOr<uint32_t> FindUnknown(absl::string_view token, const std::string& field,
                                     const Vocabulary& vocabulary) {
  for (const auto& [other, id] : vocabulary) {
    if (other == token) return id;
  }
  return Unexpected(field, "a token of the vocabulary", absl::StrCat("\"", token, "\""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadWordPiece(const Fields& fields, Vocabulary& vocabulary) {
  RETURN_IF_ERROR(
      fields.RequireKnown("unk_token,continuing_subword_prefix,max_input_chars_per_word,vocab"));
  ASSIGN_OR_RETURN(const std::string unk, fields.String("unk_token"));
  ASSIGN_OR_RETURN(const std::string prefix, fields.String("continuing_subword_prefix"));
  ASSIGN_OR_RETURN(const uint32_t longest, fields.Id("max_input_chars_per_word"));
  ASSIGN_OR_RETURN(vocabulary, LoadVocabulary(fields));
  ASSIGN_OR_RETURN(const uint32_t unk_id, FindUnknown(unk, fields.PathOf("unk_token"), vocabulary));
  if (longest > kMaxWordCharacters) {
    return Unexpected(fields.PathOf("max_input_chars_per_word"),
                      absl::StrCat("0..", kMaxWordCharacters), absl::StrCat(longest));
  }
  return std::make_unique<WordPiece>(unk_id, prefix, longest, vocabulary);
}

absl::StatusOr<std::unique_ptr<Model>> LoadWordLevel(const Fields& fields, Vocabulary& vocabulary) {
  RETURN_IF_ERROR(fields.RequireKnown("unk_token,vocab"));
  ASSIGN_OR_RETURN(const std::string unk, fields.String("unk_token"));
  ASSIGN_OR_RETURN(vocabulary, LoadVocabulary(fields));
  ASSIGN_OR_RETURN(const uint32_t unk_id, FindUnknown(unk, fields.PathOf("unk_token"), vocabulary));
  return std::make_unique<WordLevel>(unk_id, vocabulary);
}

}  // namespace attendant::text
