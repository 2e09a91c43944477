// Unigram: of all ways to split a piece into tokens, the one with the highest sum of scores.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/text/models/model.h"
#include "server/text/models/score.h"

namespace attendant::text {
namespace {

// The extra cost of an unknown character over the least likely token.
constexpr double kUnknownPenalty = 10.0;

constexpr uint32_t kUnreached = 0xFFFFFFFF;

class Unigram : public Model {
 public:
  Unigram(const Vocabulary& vocabulary, std::vector<double> scores, uint32_t unk_id,
          bool byte_fallback)
      : Model(ByteTrie(vocabulary)),
        scores_(std::move(scores)),
        unk_id_(unk_id),
        unk_score_(*std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty) {
    byte_ids_.fill(kNoId);
    for (size_t byte = 0; byte < 256 && byte_fallback; ++byte) {
      byte_ids_[byte] = vocabulary_.Find(absl::StrFormat("<0x%02X>", byte));
    }
  }

  // As the original counts them: equal tokens each.
  uint32_t size() const override { return static_cast<uint32_t>(scores_.size()); }
  bool HasSurfaceText(uint32_t id) const override { return id == unk_id_; }
  size_t scratch_bytes() const override { return 5 + sizeof(UnigramStep); }
  size_t tokens_of_item() const override { return byte_ids_[0] == kNoId ? 1 : 4; }

  void Tokenize(ItemSpan piece, ModelScratch& scratch,
                std::vector<ModelToken>& tokens) const override {
    PieceBytes& bytes = scratch.bytes;
    std::vector<UnigramStep>& steps = scratch.steps;
    bytes.Assign(piece);
    FindBest(bytes.bytes(), steps);
    const size_t before = tokens.size();
    for (uint32_t end = static_cast<uint32_t>(bytes.bytes().size()); end > 0;) {
      const uint32_t id = steps[end].id;
      uint32_t begin = steps[end].begin;
      if (id != unk_id_) {
        AddToken(bytes, begin, end, id, tokens);
      } else {
        // Adjacent unknown characters form one token, which may be in the vocabulary.
        while (begin > 0 && steps[begin].id == unk_id_) begin = steps[begin].begin;
        AddUnknown(bytes, begin, end, tokens);
      }
      end = begin;
    }
    std::reverse(tokens.begin() + before, tokens.end());
  }

 private:
  static uint32_t CharacterSize(unsigned char lead) {
    return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  }

  static void Improve(double score, uint32_t begin, uint32_t id, UnigramStep& step) {
    if (step.begin == kUnreached || score > step.score) step = {score, begin, id};
  }

  void FindBest(absl::string_view bytes, std::vector<UnigramStep>& steps) const {
    steps.assign(bytes.size() + 1, {0.0, kUnreached, 0});
    for (size_t begin = 0; begin < bytes.size();) {
      const uint32_t first = static_cast<uint32_t>(begin);
      const double so_far = steps[begin].score;
      const size_t next = begin + CharacterSize(static_cast<unsigned char>(bytes[begin]));
      bool has_character = false;
      ByteTrie::Node node = vocabulary_.root();
      for (size_t at = begin; at < bytes.size();) {
        node = vocabulary_.Child(node, static_cast<unsigned char>(bytes[at++]));
        if (node == ByteTrie::kNone) break;
        const uint32_t id = vocabulary_.Value(node);
        if (id == ByteTrie::kNoValue) continue;
        Improve(scores_[id] + so_far, first, id, steps[at]);
        has_character |= at == next;
      }
      if (!has_character) Improve(unk_score_ + so_far, first, unk_id_, steps[next]);
      begin = next;
    }
  }

  static void AddToken(const PieceBytes& bytes, uint32_t begin, uint32_t end, uint32_t id,
                       std::vector<ModelToken>& tokens) {
    tokens.push_back({id, bytes.ItemAt(begin), bytes.ItemAt(end - 1) + 1});
  }

  // Adds them in reverse, as Tokenize goes.
  void AddUnknown(const PieceBytes& bytes, uint32_t begin, uint32_t end,
                  std::vector<ModelToken>& tokens) const {
    const absl::string_view surface = bytes.bytes().substr(begin, end - begin);
    const uint32_t id = vocabulary_.Find(surface);
    const bool falls_back =
        id == kNoId && std::all_of(surface.begin(), surface.end(), [&](char byte) {
          return byte_ids_[static_cast<unsigned char>(byte)] != kNoId;
        });
    if (!falls_back) return AddToken(bytes, begin, end, id == kNoId ? unk_id_ : id, tokens);
    for (size_t i = surface.size(); i > 0; --i) {
      AddToken(bytes, begin, end, byte_ids_[static_cast<unsigned char>(surface[i - 1])], tokens);
    }
  }

  const std::vector<double> scores_;
  const uint32_t unk_id_;
  const double unk_score_;
  std::array<uint32_t, 256> byte_ids_;
};

absl::Status LoadPieces(const Fields& fields, Vocabulary& vocabulary, std::vector<double>& scores) {
  ASSIGN_OR_RETURN(const std::vector<JsonValue> pieces, fields.Array("vocab"));
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string field = absl::StrCat(fields.PathOf("vocab"), "[", i, "]");
    const std::vector<JsonValue> pair = pieces[i].Elements();
    if (pair.size() != 2 || !pieces[i].is_array() || !pair[0].is_string()) {
      return Unexpected(field, "a token and its score", pieces[i]);
    }
    if (pair[0].text().size() > kMaxTokenBytes) {
      return Unexpected(field, absl::StrCat("at most ", kMaxTokenBytes, " bytes"),
                        absl::StrCat(pair[0].text().size()));
    }
    const std::optional<double> score =
        pair[1].kind() == JsonValue::Kind::kNumber ? ParseScore(pair[1].text()) : std::nullopt;
    if (!score.has_value()) return Unexpected(field, "a finite score", pair[1]);
    vocabulary.emplace_back(pair[0].text(), static_cast<uint32_t>(i));
    scores.push_back(*score);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> LoadUnigram(const Fields& fields,
                                                   absl::Span<const double> scores_instead,
                                                   Vocabulary& vocabulary) {
  RETURN_IF_ERROR(fields.RequireKnown("unk_id,vocab,byte_fallback"));
  std::vector<double> scores;
  RETURN_IF_ERROR(LoadPieces(fields, vocabulary, scores));
  if (scores_instead.size() == scores.size()) {
    scores.assign(scores_instead.begin(), scores_instead.end());
  }
  ASSIGN_OR_RETURN(const uint32_t unk_id, fields.Id("unk_id"));
  if (unk_id >= scores.size()) {
    return Unexpected(fields.PathOf("unk_id"), absl::StrCat("less than ", scores.size()),
                      absl::StrCat(unk_id));
  }
  ASSIGN_OR_RETURN(const bool byte_fallback, fields.Bool("byte_fallback", false));
  return std::make_unique<Unigram>(vocabulary, std::move(scores), unk_id, byte_fallback);
}

}  // namespace attendant::text
