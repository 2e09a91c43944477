// SentencePiece models (spiece.model and others), for checkpoints without tokenizer.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant::text {

struct SentencePiece {
  std::string text;
  float score = 0;
};

struct SentencePieceModel {
  static constexpr size_t kMaxPieces = size_t{1} << 22;

  std::string file;                   // the name, for errors
  std::vector<SentencePiece> pieces;  // by id
  // Control symbols and those that users defined, which are tokens wherever they occur.
  std::vector<std::string> added;
  int32_t unk_id = 0;
  bool is_unigram = true;
  std::string charsmap;  // bytes; may be empty
};

// Reads a serialized ModelProto. Returns INVALID_ARGUMENT with `file` if it is not one, has no
// pieces or more than kMaxPieces, or a piece that is empty, longer than kMaxTokenBytes or not
// UTF-8.
absl::StatusOr<SentencePieceModel> ReadSentencePiece(absl::string_view bytes,
                                                     absl::string_view file);

// Return a tokenizer.json for the pieces, which contains only a model and the map of characters.
// Like transformers, both ignore other settings of the model, such as add_dummy_prefix.

// Unigram, whose scores are rounded to the decimals of JSON.
std::string UnigramJson(const SentencePieceModel& model);

// BPE. Its merges are all pairs of pieces that make a piece: first those that make the piece with
// the lowest id, and of these first the one with the shortest left piece.
std::string BpeJson(const SentencePieceModel& model);

}  // namespace attendant::text
