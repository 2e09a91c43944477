#include "tests/reliability/flood_generator/attack.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tests/reliability/flood_generator/frames.h"

namespace attendant::flood {
namespace {

constexpr std::string_view kListModels = "/attendant.v1.EncoderService/ListModels";
constexpr size_t kBufferBytes = 64 << 10;
constexpr size_t kMostPayload = 16384;  // of a frame, unless the server allows more

// As many copies as fit into `bytes`.
std::string Repeat(std::string_view part, size_t bytes) {
  std::string all;
  while (all.size() + part.size() <= bytes) all += part;
  return all;
}

// The same frames again and again.
class Endless final : public Attack {
 public:
  Endless(std::string first, std::string_view rest, bool reads)
      : first_(std::move(first)), rest_(rest), reads_(reads) {}

  std::string_view Next() override {
    if (begun_) return rest_;
    begun_ = true;
    return first_;
  }

  bool reads() const override { return reads_; }

 private:
  const std::string first_;
  const std::string_view rest_;  // outlives all connections
  const bool reads_;
  bool begun_ = false;
};

// A buffer full of copies of the frame, which all connections share.
std::string_view Forever(const std::string& frame) {
  static auto* const buffers = new std::map<std::string, std::string>;
  std::string& buffer = (*buffers)[frame];
  if (buffer.empty()) buffer = Repeat(frame, kBufferBytes);
  return buffer;
}

// The first frame of a header block that does not end with it: a call, and one more field.
std::string Begin(std::string_view field) {
  return Hello() + Frame(kHeaders, 0, 1, CallFields(kListModels, 0x00).append(field));
}

// A header block of fields `a: 1`.
std::unique_ptr<Attack> SmallFields() {
  constexpr std::string_view kField = {"\0\1a\1\061", 5};
  static const std::string* const frame =
      new std::string(Frame(kContinuation, 0, 1, Repeat(kField, kMostPayload)));
  return std::make_unique<Endless>(Begin(kField), Forever(*frame), true);
}

// A header block with a value of 127 + 0x0fffffff bytes.
std::unique_ptr<Attack> HugeValue() {
  constexpr std::string_view kFieldBegin = {"\0\1a\x7f\xff\xff\xff\x7f", 8};
  static const std::string* const frame =
      new std::string(Frame(kContinuation, 0, 1, std::string(kMostPayload, 'x')));
  return std::make_unique<Endless>(Begin(kFieldBegin), Forever(*frame), true);
}

std::unique_ptr<Attack> Unread(FrameType type, std::string_view payload) {
  return std::make_unique<Endless>(Hello(), Forever(Frame(type, 0, 0, payload)), false);
}

// Calls of a real method, each of two frames; all but the first have 28 bytes.
class Resets final : public Attack {
 public:
  std::string_view Next() override {
    if (next_stream_ == 1) {
      // Later calls find these fields in the table.
      first_ = Hello() + Call(CallFields(kListModels, 0x40));
      next_stream_ += 2;
      return first_;
    }
    if (calls_.empty()) calls_ = Repeat(Call("\x83\x86\xc1\xc0\xbf\xbe"), kBufferBytes);
    for (size_t at = 0; at < calls_.size(); at += kCallBytes, next_stream_ += 2) {
      SetStream(next_stream_, &calls_[at]);
      SetStream(next_stream_, &calls_[at + kHeadersBytes]);
    }
    return calls_;
  }

 private:
  static constexpr size_t kHeadersBytes = kFrameHead + 6;
  static constexpr size_t kCallBytes = kHeadersBytes + kFrameHead + 4;

  static std::string Call(std::string_view fields) {
    const std::string cancel = {0, 0, 0, 8};
    return Frame(kHeaders, kEndHeaders, 1, fields) + Frame(kReset, 0, 1, cancel);
  }

  std::string first_, calls_;
  uint32_t next_stream_ = 1;
};

// Health checks that have sent 10 of the 100 bytes of their message. One that the server ends
// makes room for another one, as far as the server's window for the connection allows.
class HalfSentChecks final : public Attack {
 public:
  std::string_view Next() override {
    while (open_.size() < kCalls && window_ >= static_cast<int64_t>(kMessage.size())) Start();
    sending_.swap(unsent_);
    unsent_.clear();
    return sending_;
  }

  void Receive(std::string_view bytes) override {
    received_ += bytes;
    size_t at = 0;
    while (received_.size() >= at + kFrameHead) {
      const size_t payload = ReadUint32(&received_[at]) >> 8;
      if (received_.size() < at + kFrameHead + payload) break;
      Handle(std::string_view(received_).substr(at, kFrameHead + payload));
      at += kFrameHead + payload;
    }
    received_.erase(0, at);
  }

 private:
  static constexpr size_t kCalls = 100;
  static constexpr std::string_view kMessage = {"\0\0\0\0\x64xxxxxxxxxx", 15};

  void Start() {
    unsent_ += Frame(kHeaders, kEndHeaders, next_stream_,
                     CallFields("/grpc.health.v1.Health/Check", 0x00));
    unsent_ += Frame(kData, 0, next_stream_, kMessage);
    window_ -= static_cast<int64_t>(kMessage.size());
    open_.insert(next_stream_);
    next_stream_ += 2;
  }

  void Handle(std::string_view frame) {
    const auto type = static_cast<uint8_t>(frame[3]);
    const auto flags = static_cast<uint8_t>(frame[4]);
    const uint32_t stream = ReadUint32(&frame[kStreamOffset]);
    const std::string_view payload = frame.substr(kFrameHead);
    if (type == kReset || (type == kHeaders && (flags & kEndStream))) {
      open_.erase(stream);
    } else if (type == kWindowUpdate && stream == 0) {
      window_ += ReadUint32(payload.data());
    } else if (type == kSettings && !(flags & kAck)) {
      unsent_ += Frame(kSettings, kAck, 0);
    } else if (type == kPing && !(flags & kAck)) {
      unsent_ += Frame(kPing, kAck, 0, payload);
    }
  }

  std::string received_, unsent_ = Hello(), sending_;
  std::set<uint32_t> open_;
  uint32_t next_stream_ = 1;
  int64_t window_ = 65535;  // of the connection
};

}  // namespace

std::unique_ptr<Attack> MakeAttack(std::string_view name, int slot) {
  if (name == "continuation") return slot % 2 == 0 ? SmallFields() : HugeValue();
  if (name == "reset") return std::make_unique<Resets>();
  if (name == "settings") return Unread(kSettings, {});
  if (name == "ping") return Unread(kPing, "attended");
  if (name == "health") return std::make_unique<HalfSentChecks>();
  return nullptr;
}

}  // namespace attendant::flood
