#include "server/text/models/sentence_piece.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/text/base/items.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/json_tree.h"
#include "server/text/models/model.h"
#include "server/text/models/sentence_piece_model.pb.h"

namespace attendant::text {
namespace {

constexpr int kControl = 3, kUserDefined = 4;  // types of pieces
constexpr int kUnigram = 1;                    // of the types of models

// Returns whether a serialized ModelProto has at most kMaxPieces. Parsing it takes many times the
// bytes of a small piece.
bool HasFewPieces(absl::string_view bytes) {
  using google::protobuf::internal::WireFormatLite;
  constexpr uint32_t kPieces = WireFormatLite::MakeTag(
      sentence_piece::ModelProto::kPiecesFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  size_t pieces = 0;
  for (uint32_t tag; (tag = stream.ReadTag()) != 0;) {
    if (tag == kPieces && ++pieces > SentencePieceModel::kMaxPieces) return false;
    if (!WireFormatLite::SkipField(&stream, tag)) break;
  }
  return true;
}

absl::Status CheckPieces(const SentencePieceModel& model) {
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencePiece& piece = model.pieces[i];
    const std::string field = absl::StrCat(model.file, ": pieces[", i, "]");
    if (piece.text.empty() || piece.text.size() > kMaxTokenBytes) {
      return Unexpected(field, absl::StrCat("1..", kMaxTokenBytes, " bytes"),
                        absl::StrCat(piece.text.size()));
    }
    if (ValidPrefix(piece.text) != piece.text.size()) {
      return Unexpected(field, "UTF-8", "other bytes");
    }
    if (!std::isfinite(piece.score)) {
      return Unexpected(field, "a finite score", absl::StrCat(piece.score));
    }
  }
  return absl::OkStatus();
}

// Returns the JSON of a tokenizer with a model.
std::string TokenizerJson(const SentencePieceModel& model, absl::string_view json) {
  if (model.charsmap.empty()) return absl::StrCat(R"({"model":)", json, "}");
  return absl::StrCat(R"({"normalizer":{"type":"Precompiled","precompiled_charsmap":")",
                      absl::Base64Escape(model.charsmap), R"("},"model":)", json, "}");
}

bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

}  // namespace

absl::StatusOr<SentencePieceModel> ReadSentencePiece(absl::string_view bytes,
                                                     absl::string_view file) {
  SentencePieceModel model;
  model.file = std::string(file);
  if (bytes.size() > JsonTree::kMaxBytes) {
    return Unexpected(file, absl::StrCat("at most ", JsonTree::kMaxBytes, " bytes"),
                      absl::StrCat(bytes.size()));
  }
  if (!HasFewPieces(bytes)) {
    return Unexpected(file, absl::StrCat("at most ", SentencePieceModel::kMaxPieces, " pieces"),
                      "more");
  }
  sentence_piece::ModelProto read;
  if (!read.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Unexpected(file, "a SentencePiece model", "other bytes");
  }
  if (read.pieces().empty()) return Unexpected(file, "a SentencePiece model", "no pieces");
  for (sentence_piece::ModelProto::SentencePiece& piece : *read.mutable_pieces()) {
    if (piece.type() == kControl || piece.type() == kUserDefined) {
      model.added.push_back(piece.piece());
    }
    model.pieces.push_back({std::move(*piece.mutable_piece()), piece.score()});
  }
  model.is_unigram = read.trainer_spec().model_type() == kUnigram;
  model.unk_id = read.trainer_spec().unk_id();
  model.charsmap = read.normalizer_spec().precompiled_charsmap();
  RETURN_IF_ERROR(CheckPieces(model));
  return model;
}

std::string UnigramJson(const SentencePieceModel& model) {
  std::string vocabulary;
  for (const SentencePiece& piece : model.pieces) {
    absl::StrAppend(&vocabulary, vocabulary.empty() ? "" : ",", "[", QuoteJson(piece.text), ",",
                    absl::StrFormat("%.9g", piece.score), "]");
  }
  return TokenizerJson(model, absl::StrCat(R"({"type":"Unigram","vocab":[)", vocabulary, "]}"));
}

std::string BpeJson(const SentencePieceModel& model) {
  absl::flat_hash_map<absl::string_view, size_t> ids;  // of equal pieces the last
  for (size_t id = 0; id < model.pieces.size(); ++id) ids[model.pieces[id].text] = id;
  std::string vocabulary, merges;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const absl::string_view text = model.pieces[id].text;
    if (ids[text] != id) continue;
    absl::StrAppend(&vocabulary, vocabulary.empty() ? "" : ",", QuoteJson(text), ":", id);
    for (size_t at = 1; at < text.size(); ++at) {
      const absl::string_view left = text.substr(0, at), right = text.substr(at);
      if (!BeginsCharacter(text[at]) || !ids.contains(left) || !ids.contains(right)) continue;
      absl::StrAppend(&merges, merges.empty() ? "[" : ",[", QuoteJson(left), ",", QuoteJson(right),
                      "]");
    }
  }
  return TokenizerJson(model, absl::StrCat(R"({"type":"BPE","vocab":{)", vocabulary,
                                           R"(},"merges":[)", merges, "]}"));
}

}  // namespace attendant::text
