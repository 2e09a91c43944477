#include "server/text/tokenizer_classes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/text/tokenizer_class_parts.h"

namespace attendant::text {
namespace {

constexpr char kBertTokens[] =
    "unk_token=[UNK] sep_token=[SEP] pad_token=[PAD] cls_token=[CLS] mask_token=[MASK]";
constexpr char kRobertaTokens[] =
    "bos_token=<s> eos_token=</s> unk_token=<unk> sep_token=</s> pad_token=<pad> cls_token=<s> "
    "mask_token=<mask>";

constexpr char kAlbertTokens[] =
    "bos_token=[CLS] eos_token=[SEP] unk_token=<unk> sep_token=[SEP] pad_token=<pad> "
    "cls_token=[CLS] mask_token=[MASK]";

constexpr TokenizerClass kClasses[] = {
    {.name = "BertTokenizer",
     .model = "WordPiece",
     .model_types = "bert,chinese_clip,convbert,distilbert,electra,ernie,layoutlm,lxmert,"
                    "megatron-bert,mobilebert,nomic_bert,qdqbert,retribert,squeezebert,visual_bert",
     .special = kBertTokens,
     .parts = LikeBert,
     .has_types = true},
    {.name = "DPRContextEncoderTokenizer",
     .model = "WordPiece",
     .model_types = "",
     .special = kBertTokens,
     .parts = LikeDpr,
     .has_types = true},
    {"DistilBertTokenizer", "WordPiece", "", kBertTokens, LikeBert},
    {"MPNetTokenizer", "WordPiece", "mpnet",
     "bos_token=<s> eos_token=</s> unk_token=[UNK] sep_token=</s> pad_token=<pad> cls_token=<s> "
     "mask_token=<mask>",
     LikeMpnet},
    {"RobertaTokenizer", "BPE",
     "roberta,roberta-prelayernorm,bart,data2vec-text,ibert,lilt,longformer,mega,mra",
     kRobertaTokens, LikeRoberta},
    {"GPT2Tokenizer", "BPE", "",
     "bos_token=<|endoftext|> eos_token=<|endoftext|> unk_token=<|endoftext|>", LikeGpt2},
    {.name = "XLMRobertaTokenizer",
     .model = "Unigram",
     .model_types = "xlm-roberta,gte,jina_embeddings_v3,xmod",
     .special = kRobertaTokens,
     .parts = LikeXlmRoberta,
     .sentence_piece = "sentencepiece.bpe.model",
     .pieces = FairseqPieces},
    {.name = "CamembertTokenizer",
     .model = "Unigram",
     .model_types = "camembert",
     .special = kRobertaTokens,
     .parts = LikeCamembert,
     .change_tokens = AddNotUsed,
     .mask_flags = {.lstrip = true},
     .sentence_piece = "sentencepiece.bpe.model",
     .pieces = CamembertPieces},
    {.name = "AlbertTokenizer",
     .model = "Unigram",
     .model_types = "albert",
     .special = kAlbertTokens,
     .parts = LikeAlbert,
     .sentence_piece = "spiece.model"},
    {.name = "RemBertTokenizer",
     .model = "Unigram",
     .model_types = "rembert",
     .special = kAlbertTokens,
     .parts = LikeRemBert,
     .sentence_piece = "sentencepiece.model"},
    {.name = "BigBirdTokenizer",
     .model = "Unigram",
     .model_types = "big_bird",
     .special = "bos_token=<s> eos_token=</s> unk_token=<unk> sep_token=[SEP] pad_token=<pad> "
                "cls_token=[CLS] mask_token=[MASK]",
     .parts = LikeBigBird,
     .mask_flags = {.lstrip = true},
     .sentence_piece = "spiece.model"},
    {.name = "T5Tokenizer",
     .model = "Unigram",
     .model_types = "t5,mt5,switch_transformers",
     .special = "eos_token=</s> unk_token=<unk> pad_token=<pad>",
     .parts = LikeT5,
     .change_tokens = AddSentinels,
     .sentence_piece = "spiece.model",
     .pieces = T5Pieces},
    {.name = "PegasusTokenizer",
     .model = "Unigram",
     .model_types = "pegasus",
     .special = "eos_token=</s> unk_token=<unk> pad_token=<pad> mask_token=<mask_2>",
     .parts = LikePegasus,
     .change_tokens = UsePegasusTokens,
     .sentence_piece = "spiece.model",
     .pieces = PegasusPieces},
    {.name = "MBartTokenizer",
     .model = "Unigram",
     .model_types = "mbart",
     .special = kRobertaTokens,
     .parts = LikeMbart,
     .change_tokens = AddMbartLanguages,
     .mask_flags = {.lstrip = true},
     .sentence_piece = "sentencepiece.bpe.model",
     .pieces = MbartPieces},
    {.name = "MBart50Tokenizer",
     .model = "Unigram",
     .model_types = "mbart50",
     .special = "eos_token=</s> unk_token=<unk> sep_token=</s> pad_token=<pad> cls_token=<s> "
                "mask_token=<mask>",
     .parts = LikeMbart50,
     .change_tokens = AddMbart50Languages,
     .mask_flags = {.lstrip = true},
     .sentence_piece = "sentencepiece.bpe.model",
     .pieces = Mbart50Pieces},
    {.name = "NllbTokenizer",
     .model = "BPE",
     .model_types = "nllb,nllb-moe",
     .special = kRobertaTokens,
     .parts = LikeNllb,
     .mask_flags = {.lstrip = true, .normalized = true},
     .sentence_piece = "sentencepiece.bpe.model",
     .pieces = NllbPieces},
    {.name = "DebertaV2Tokenizer",
     .model = "Unigram",
     .model_types = "deberta-v2",
     .special = "bos_token=[CLS] eos_token=[SEP] unk_token=[UNK] sep_token=[SEP] pad_token=[PAD] "
                "cls_token=[CLS] mask_token=[MASK]",
     .parts = LikeDeberta,
     .has_types = true,
     .sentence_piece = "spm.model"},
    {.name = "LlamaTokenizer",
     .model = "BPE",
     .model_types = "",
     .special = "bos_token=<s> eos_token=</s> unk_token=<unk>",
     .parts = LikeLlama,
     .sentence_piece = "tokenizer.model"},
    {.name = "GemmaTokenizer",
     .model = "BPE",
     .model_types = "gemma,gemma2,gemma3,gemma3_text,gemma3n,gemma3n_text,t5gemma",
     .special = "bos_token=<bos> eos_token=<eos> unk_token=<unk> pad_token=<pad> mask_token=<mask>",
     .parts = LikeGemma,
     .sentence_piece = "tokenizer.model"},
    {.name = "Qwen2Tokenizer",
     .model = "BPE",
     .model_types = "qwen2,qwen2_moe,qwen2_vl,qwen2_5_vl,qwen3,qwen3_moe,qwen3_vl",
     .special = "eos_token=<|endoftext|> unk_token=<|endoftext|> pad_token=<|endoftext|>",
     .parts = LikeQwen,
     .resets_special_flags = true},
    {"CLIPTokenizer", "BPE", "clip,clipseg,xclip",
     "bos_token=<|startoftext|> eos_token=<|endoftext|> unk_token=<|endoftext|> "
     "pad_token=<|endoftext|>",
     LikeClip},
};

// Aliases of classes.
constexpr std::pair<absl::string_view, absl::string_view> kAliases[] = {
    {"ConvBertTokenizer", "BertTokenizer"},
    {"ElectraTokenizer", "BertTokenizer"},
    {"MobileBertTokenizer", "BertTokenizer"},
    {"DPRQuestionEncoderTokenizer", "DPRContextEncoderTokenizer"},
    {"SqueezeBertTokenizer", "BertTokenizer"},
    {"LayoutLMTokenizer", "BertTokenizer"},
    {"LxmertTokenizer", "BertTokenizer"},
    {"LongformerTokenizer", "RobertaTokenizer"},
    {"BartTokenizer", "RobertaTokenizer"},
    {"LEDTokenizer", "RobertaTokenizer"}};

// Model types for which transformers uses tokenizer.json as it is, whatever class is named.
constexpr absl::string_view kFileModelTypes =
    "modernbert,modernbert-decoder,umt5,xlm-roberta-xl,nystromformer,mistral,mistral3,ministral,"
    "ministral3,mixtral,phi3,internlm2,olmo2,olmo3,granite,stablelm,glm,glm4";

// Classes that split texts by code of their own, with the model types that they belong to; "":
// only by name.
constexpr std::pair<absl::string_view, absl::string_view> kOwnCode[] = {
    {"EsmTokenizer", "esm"},       {"RoFormerTokenizer", "roformer"}, {"RoCBertTokenizer", ""},
    {"BertJapaneseTokenizer", ""}, {"BertweetTokenizer", ""},         {"PhobertTokenizer", ""},
    {"BartphoTokenizer", ""},      {"BertGenerationTokenizer", ""},   {"XLMTokenizer", ""},
    {"FlaubertTokenizer", ""},     {"ProphetNetTokenizer", ""},       {"TapasTokenizer", ""},
    {"ByT5Tokenizer", ""},         {"CanineTokenizer", ""},           {"M2M100Tokenizer", ""},
    {"MarianTokenizer", ""}};

bool Lists(absl::string_view list, absl::string_view name) {
  const std::vector<absl::string_view> names = absl::StrSplit(list, ',', absl::SkipEmpty());
  return std::find(names.begin(), names.end(), name) != names.end();
}

const TokenizerClass* ClassNamed(absl::string_view name) {
  for (const auto& [alias, own] : kAliases) {
    if (name == alias) name = own;
  }
  for (const TokenizerClass& known : kClasses) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

// Returns the default of a special token in a class's list.
std::optional<std::string> Default(const TokenizerClass& known, absl::string_view key) {
  for (absl::string_view token : absl::StrSplit(known.special, ' ')) {
    if (absl::ConsumePrefix(&token, key) && absl::ConsumePrefix(&token, "=")) {
      return std::string(token);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> ClassName(const TokenizerSettings& settings) {
  std::optional<std::string> name = settings.tokenizer.Text("tokenizer_class");
  if (!name.has_value()) name = settings.model.Text("tokenizer_class");
  return name;
}

const TokenizerClass* FindTokenizerClass(const TokenizerSettings& settings,
                                         absl::string_view tokenizer_json) {
  const std::string type = settings.model.Text("model_type").value_or("");
  const TokenizerClass* of_type = nullptr;
  for (const TokenizerClass& known : kClasses) {
    if (!type.empty() && Lists(known.model_types, type)) of_type = &known;
  }
  const std::optional<std::string> name = ClassName(settings);
  if (!name.has_value()) return of_type;
  if (Lists(kFileModelTypes, type)) return nullptr;
  // Many of its checkpoints name the class of another model.
  if (type == "qwen2") return of_type;
  const TokenizerClass* named = ClassNamed(absl::StripSuffix(*name, "Fast"));
  const bool is_llama = named != nullptr && named->name == "LlamaTokenizer";
  return is_llama && absl::StrContains(tokenizer_json, "\"ByteLevel\"") ? nullptr : named;
}

absl::Status CheckNeedsNoOwnCode(const TokenizerSettings& settings) {
  const std::string type = settings.model.Text("model_type").value_or("");
  const std::optional<std::string> name = ClassName(settings);
  for (const auto& [own, of_type] : kOwnCode) {
    const bool is_own = name.has_value() ? absl::StripSuffix(*name, "Fast") == own
                                         : !type.empty() && type == of_type;
    if (!is_own) continue;
    return absl::UnimplementedError(
        absl::StrCat("tokenizer_class: ", own,
                     " not supported: it splits texts with custom code; send token ids"));
  }
  return absl::OkStatus();
}

const TokenizerClass& BertClass() { return kClasses[0]; }

std::optional<AddedTokenSetting> SpecialTokenOf(const TokenizerSettings& settings,
                                                const TokenizerClass* known,
                                                absl::string_view key) {
  if (known == nullptr) return settings.SpecialToken(key);
  return settings.SpecialToken(key, Default(*known, key),
                               key == "mask_token" ? known->mask_flags : AddedTokenFlags());
}

}  // namespace attendant::text
