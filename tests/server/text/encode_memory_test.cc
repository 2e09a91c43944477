// That encoding takes no more memory than Tokenizer::MaxEncodeBytes says. Replaces operator new.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/text/tokenizer.h"
#include "tests/server/text/shown.h"

namespace {

std::atomic<int64_t> live{0}, peak{0};

void* Allocate(size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  const int64_t now = live += static_cast<int64_t>(malloc_usable_size(memory));
  if (now > peak) peak = now;
  return memory;
}

void Free(void* memory) {
  if (memory == nullptr) return;
  live -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t) noexcept { Free(memory); }

namespace attendant::text {
namespace {

std::string Repeated(const std::string& text, size_t bytes) {
  std::string repeated;
  while (repeated.size() + text.size() <= bytes) repeated += text;
  return repeated;
}

void ExpectBounded(const std::string& tokenizer_json) {
  const auto tokenizer = Tokenizer::Load(tokenizer_json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  for (const std::string part :
       {"a", "a ", " ", "é", "中", "\uFDFA", "\u0315\u0300", "\U0001F600", "x, y. "}) {
    for (const size_t bytes : {10, 1000, 100'000}) {
      const std::string text = Repeated(part, bytes);
      const int64_t before = live;
      peak = before;
      ASSERT_TRUE((*tokenizer)->Encode(text, {}).ok());
      EXPECT_LE(peak - before, static_cast<int64_t>((*tokenizer)->MaxEncodeBytes(text)))
          << bytes << " bytes of " << part;
    }
  }
}

TEST(EncodeMemoryTest, IsBoundedForWordsOfAnyLength) {
  ExpectBounded(WordTokenizer("a b", "", R"({"type":"NFKC"})"));
  ExpectBounded(WordTokenizer("a b", Added(3, "x"), R"({"type":"Lowercase"})"));
  ExpectBounded(
      WordTokenizer("a b", "",
                    R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,)"
                    R"("strip_accents":true,"lowercase":true})"));
}

TEST(EncodeMemoryTest, IsBoundedForBytes) {
  const auto with_model = [](const std::string& model) {
    return absl::StrCat(
        R"({"version":"1.0","normalizer":null,"pre_tokenizer":{"type":"ByteLevel",)",
        R"("add_prefix_space":true,"trim_offsets":true,"use_regex":false},"model":)", model, "}");
  };
  ExpectBounded(with_model(
      R"({"type":"BPE","vocab":{"U":0,"a":1,"aa":2},"merges":["a a"],"unk_token":"U"})"));
  ExpectBounded(
      with_model(R"({"type":"Unigram","unk_id":0,"vocab":[["U",0],["a",-1],["aa",-1]]})"));
}

}  // namespace
}  // namespace attendant::text
