#include "server/text/models/sentence_piece.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <bit>
#include <cmath>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/text/base/items.h"
#include "server/text/base/json_fields.h"
#include "server/text/base/json_tree.h"
#include "server/text/models/model.h"

namespace attendant::text {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr uint32_t Tag(int field, WireFormatLite::WireType type) {
  return WireFormatLite::MakeTag(field, type);
}
constexpr auto kVarint = WireFormatLite::WIRETYPE_VARINT;
constexpr auto kFixed32 = WireFormatLite::WIRETYPE_FIXED32;
constexpr auto kBytes = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;

// sentencepiece_model.proto.
constexpr uint32_t kPiece = Tag(1, kBytes), kTrainer = Tag(2, kBytes), kNormalizer = Tag(3, kBytes);
constexpr uint32_t kPieceText = Tag(1, kBytes), kPieceScore = Tag(2, kFixed32),
                   kPieceType = Tag(3, kVarint);
constexpr uint64_t kControl = 3, kUserDefined = 4;  // types of pieces
constexpr uint32_t kModelType = Tag(3, kVarint), kUnkId = Tag(40, kVarint);
constexpr uint64_t kUnigram = 1;  // of the types of models
constexpr uint32_t kCharsmap = Tag(2, kBytes);

// A field of a message: its tag, and the value of its type.
struct Field {
  uint32_t tag = 0;
  uint64_t number = 0;  // kVarint, kFixed32
  absl::string_view bytes;
};

// Reads the value of a field; skips those of other types.
bool ReadValue(CodedInputStream& stream, absl::string_view message, Field& field) {
  switch (WireFormatLite::GetTagWireType(field.tag)) {
    case kVarint:
      return stream.ReadVarint64(&field.number);
    case kFixed32: {
      uint32_t bits = 0;
      const bool read = stream.ReadLittleEndian32(&bits);
      field.number = bits;
      return read;
    }
    case kBytes: {
      uint32_t size = 0;
      if (!stream.ReadVarint32(&size)) return false;
      const size_t begin = static_cast<size_t>(stream.CurrentPosition());
      if (size > message.size() - begin) return false;
      field.bytes = message.substr(begin, size);
      return stream.Skip(static_cast<int>(size));
    }
    default:
      return WireFormatLite::SkipField(&stream, field.tag);
  }
}

// Calls `visit` for each field of a message. Returns false if it is not one, or if `visit` does.
template <typename Visit>
bool ForEachField(absl::string_view message, Visit visit) {
  CodedInputStream stream(reinterpret_cast<const uint8_t*>(message.data()),
                          static_cast<int>(message.size()));
  for (Field field; (field.tag = stream.ReadTag()) != 0;) {
    if (!ReadValue(stream, message, field) || !visit(field)) return false;
  }
  return stream.ConsumedEntireMessage();
}

// Reads a piece. Returns false if it is not one.
bool ReadPiece(absl::string_view message, SentencePieceModel& model) {
  SentencePiece piece;
  uint64_t type = 0;
  const bool is_message = ForEachField(message, [&](const Field& field) {
    if (field.tag == kPieceText) piece.text = std::string(field.bytes);
    if (field.tag == kPieceScore) {
      piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.number));
    }
    if (field.tag == kPieceType) type = field.number;
    return true;
  });
  if (type == kControl || type == kUserDefined) model.added.push_back(piece.text);
  model.pieces.push_back(std::move(piece));
  return is_message;
}

bool ReadModel(absl::string_view bytes, SentencePieceModel& model) {
  return ForEachField(bytes, [&](const Field& field) {
    if (field.tag == kPiece) {
      return model.pieces.size() <= SentencePieceModel::kMaxPieces && ReadPiece(field.bytes, model);
    }
    if (field.tag != kTrainer && field.tag != kNormalizer) return true;
    return ForEachField(field.bytes, [&](const Field& inner) {
      if (field.tag == kNormalizer && inner.tag == kCharsmap) {
        model.charsmap = std::string(inner.bytes);
      }
      if (field.tag == kTrainer && inner.tag == kModelType) {
        model.is_unigram = inner.number == kUnigram;
      }
      if (field.tag == kTrainer && inner.tag == kUnkId) {
        model.unk_id = static_cast<int32_t>(inner.number);
      }
      return true;
    });
  });
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
  const bool is_model = ReadModel(bytes, model);
  if (model.pieces.size() > SentencePieceModel::kMaxPieces) {
    return Unexpected(file, absl::StrCat("at most ", SentencePieceModel::kMaxPieces, " pieces"),
                      "more");
  }
  if (!is_model) return Unexpected(file, "a SentencePiece model", "other bytes");
  if (model.pieces.empty()) return Unexpected(file, "a SentencePiece model", "no pieces");
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
