#include "server/wire/request_codec.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "attendant/v1/tensor.pb.h"

namespace attendant::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

constexpr size_t kDeepest = 100;  // protobuf refuses messages that nest deeper
constexpr int kLongestVarint = 10;
constexpr int kLongestTag = 5;
constexpr int kLongestLength = 5;

struct ByteRange {
  int64_t offset, size;
};

// Sequential reader of a message in several slices, which must outlive it. Do not read beyond
// size().
class SliceReader {
 public:
  explicit SliceReader(const MessageSlices& slices) : slices_(slices), size_(ByteSize(slices)) {}

  int64_t size() const { return size_; }
  int64_t position() const { return position_; }

  uint8_t ReadByte() {
    SkipEndOfSlice();
    const uint8_t byte = slices_[slice_].begin()[in_slice_];
    Advance(1);
    return byte;
  }

  void Skip(int64_t count) {
    while (count > 0) count -= Advance(std::min(count, Contiguous()));
  }

  void AppendTo(std::string& target, int64_t count) {
    while (count > 0) {
      const int64_t step = std::min(count, Contiguous());
      target.append(reinterpret_cast<const char*>(slices_[slice_].begin()) + in_slice_,
                    static_cast<size_t>(step));
      count -= Advance(step);
    }
  }

 private:
  void SkipEndOfSlice() {
    while (in_slice_ == static_cast<int64_t>(slices_[slice_].size())) {
      ++slice_;
      in_slice_ = 0;
    }
  }

  // Returns how many bytes, at least one, can be read from the current slice.
  int64_t Contiguous() {
    SkipEndOfSlice();
    return static_cast<int64_t>(slices_[slice_].size()) - in_slice_;
  }

  int64_t Advance(int64_t count) {
    in_slice_ += count;
    position_ += count;
    return count;
  }

  const MessageSlices& slices_;
  int64_t size_ = 0;
  int64_t position_ = 0;
  size_t slice_ = 0;
  int64_t in_slice_ = 0;
};

std::string Varint(uint64_t value) {
  uint8_t bytes[kLongestVarint];
  const uint8_t* end = google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, bytes);
  return std::string(reinterpret_cast<const char*>(bytes), static_cast<size_t>(end - bytes));
}

// Whether the field is kept outside the head of the request: the data of a tensor, or a repeated
// bytes or string field.
bool HoldsPayload(const FieldDescriptor& field) {
  if (field.is_repeated()) return field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  return field.containing_type() == v1::Tensor::descriptor() &&
         field.number() == v1::Tensor::kDataFieldNumber;
}

// Whether the field may lead to tensor data. In a list or a oneof, a field number does not identify
// one tensor.
bool HoldsMessage(const FieldDescriptor& field) {
  return field.type() == FieldDescriptor::TYPE_MESSAGE && !field.is_repeated() &&
         field.real_containing_oneof() == nullptr;
}

// Copies a message into `head` unchanged, without the `data` of its tensors. It applies protobuf's
// rules only as far as is needed to find that data. The copied bytes need not be valid: protobuf
// meets them in the head just as it would have in the message, and refuses them there.
class HeadCopier {
 public:
  HeadCopier(std::shared_ptr<const MessageSlices> slices, int64_t max_head_bytes)
      : slices_(std::move(slices)), reader_(*slices_), max_head_bytes_(max_head_bytes) {}

  // Returns false if the message is refused; error() then says why.
  bool CopyMessage(const Descriptor& type) { return CopyFields(type, reader_.size()); }

  const std::string& head() const { return head_; }
  // Makes one payload for each path. Making a payload takes time in proportion to the slices before
  // it, and a message may repeat the data of a tensor any number of times.
  PayloadsByPath MakePayloads() const {
    PayloadsByPath payloads;
    for (const auto& [path, bytes] : data_) {
      payloads.emplace(path, Payload(slices_, bytes.offset, bytes.size));
    }
    return payloads;
  }
  std::string error() const { return absl::StrCat("at byte ", reader_.position(), ": ", error_); }

 private:
  bool CopyFields(const Descriptor& type, int64_t end) {
    while (reader_.position() < end) {
      const size_t tag_at = head_.size();
      uint32_t tag;
      if (!CopyTag(end, tag)) return false;
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      const auto wire_type = WireFormatLite::GetTagWireType(tag);
      const bool has_length = wire_type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      const FieldDescriptor* field = has_length ? type.FindFieldByNumber(number) : nullptr;
      path_.push_back(number);
      if (field != nullptr && HoldsPayload(*field)) {
        head_.resize(tag_at);
        if (!TakeData(field->is_repeated(), end)) return false;
      } else if (field != nullptr && HoldsMessage(*field) && path_.size() < kDeepest) {
        if (!CopySubmessage(*field->message_type(), end)) return false;
      } else if (!CopyValue(wire_type, end)) {
        return false;
      }
      path_.pop_back();
    }
    return true;
  }

  bool TakeData(bool is_element, int64_t end) {
    int64_t size;
    if (!ReadLength(end, size)) return false;
    std::vector<int> path = path_;
    if (is_element) {
      int& elements = elements_[path];
      if (elements > kMostRepeatedPayloads) {
        reader_.Skip(size);
        return true;
      }
      path.push_back(elements++);
    } else {
      path.pop_back();  // the path of data is its Tensor's
    }
    data_[std::move(path)] = {reader_.position(), size};
    reader_.Skip(size);
    return true;
  }

  bool CopySubmessage(const Descriptor& type, int64_t end) {
    int64_t size;
    if (!CountField() || !ReadLength(end, size)) return false;
    const size_t start = head_.size();
    if (!CopyFields(type, reader_.position() + size)) return false;
    head_.insert(start, Varint(head_.size() - start));
    return true;
  }

  bool CopyValue(WireFormatLite::WireType wire_type, int64_t end) {
    uint64_t ignored;
    switch (wire_type) {
      case WireFormatLite::WIRETYPE_VARINT:
        return CopyVarint(end, kLongestVarint, ignored);
      case WireFormatLite::WIRETYPE_FIXED64:
        return CopyBytes(end, 8);
      case WireFormatLite::WIRETYPE_FIXED32:
        return CopyBytes(end, 4);
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return CopyLengthDelimited(end);
      case WireFormatLite::WIRETYPE_START_GROUP:
        return CopyGroup(end);
      case WireFormatLite::WIRETYPE_END_GROUP:
        return Fail("the end of a group without its start");
    }
    return Fail("unknown wire type");
  }

  bool CopyLengthDelimited(int64_t end) {
    int64_t size;
    if (!CountField() || !ReadLength(end, size)) return false;
    return Append(Varint(static_cast<uint64_t>(size))) && CopyBytes(end, size);
  }

  // Copies a group from after its start tag through the end tag of the same depth. A loop suffices,
  // because protobuf checks later how deep groups nest and whether their tags match.
  bool CopyGroup(int64_t end) {
    for (int64_t depth = 1; depth > 0;) {
      uint32_t tag;
      if (!CopyTag(end, tag)) return false;
      const auto wire_type = WireFormatLite::GetTagWireType(tag);
      if (wire_type == WireFormatLite::WIRETYPE_START_GROUP) {
        ++depth;
      } else if (wire_type == WireFormatLite::WIRETYPE_END_GROUP) {
        --depth;
      } else if (!CopyValue(wire_type, end)) {
        return false;
      }
    }
    return true;
  }

  bool CopyTag(int64_t end, uint32_t& tag) {
    uint64_t value;
    if (!CopyVarint(end, kLongestTag, value)) return false;
    tag = static_cast<uint32_t>(value);
    return WireFormatLite::GetTagFieldNumber(tag) > 0 || Fail("field number 0");
  }

  bool CopyVarint(int64_t end, int longest, uint64_t& value) {
    std::string bytes;
    return ReadVarint(end, longest, value, bytes) && Append(bytes);
  }

  // Reads the length of a length-delimited field and checks that as many bytes are left.
  bool ReadLength(int64_t end, int64_t& length) {
    uint64_t value;
    std::string ignored;
    if (!ReadVarint(end, kLongestLength, value, ignored)) return false;
    if (value > static_cast<uint64_t>(end - reader_.position())) {
      return Fail(absl::StrCat("a length of ", value, " bytes with ", end - reader_.position(),
                               " bytes left"));
    }
    length = static_cast<int64_t>(value);
    return true;
  }

  bool ReadVarint(int64_t end, int longest, uint64_t& value, std::string& bytes) {
    value = 0;
    for (int i = 0; i < longest; ++i) {
      if (reader_.position() == end) return Fail("truncated inside a number");
      const uint8_t byte = reader_.ReadByte();
      bytes.push_back(static_cast<char>(byte));
      value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
      if (byte < 0x80) return true;
    }
    return Fail(absl::StrCat("a number of more than ", longest, " bytes"));
  }

  bool CopyBytes(int64_t end, int64_t count) {
    if (count > end - reader_.position()) return Fail("truncated");
    if (!HasRoom(count)) return false;
    reader_.AppendTo(head_, count);
    return true;
  }

  bool Append(const std::string& bytes) {
    if (!HasRoom(static_cast<int64_t>(bytes.size()))) return false;
    head_ += bytes;
    return true;
  }

  bool CountField() {
    return ++fields_copied_ <= kMostHeadFields ||
           Fail(absl::StrCat("more than ", kMostHeadFields, " submessages, texts and lists"));
  }

  bool HasRoom(int64_t count) {
    return count <= max_head_bytes_ - static_cast<int64_t>(head_.size()) ||
           Fail(absl::StrCat("more than ", max_head_bytes_,
                             " bytes besides the tensor data (data, raw_input_contents)"));
  }

  bool Fail(std::string error) {
    error_ = std::move(error);
    return false;
  }

  const std::shared_ptr<const MessageSlices> slices_;
  SliceReader reader_;
  const int64_t max_head_bytes_;
  std::string head_;
  int64_t fields_copied_ = 0;
  std::vector<int> path_;                       // of the current field
  std::map<std::vector<int>, int> elements_;    // taken of each repeated field
  std::map<std::vector<int>, ByteRange> data_;  // the last for each path
  std::string error_;
};

}  // namespace

absl::StatusOr<PayloadsByPath> ParseRequest(const grpc::ByteBuffer& buffer, int64_t max_head_bytes,
                                            google::protobuf::Message& request) {
  const auto malformed = [&](const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat("malformed ", request.GetDescriptor()->full_name(), ": ", why));
  };
  auto slices = std::make_shared<MessageSlices>();
  if (!buffer.Dump(slices.get()).ok()) return malformed("no message");
  if (buffer.Length() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return malformed(absl::StrCat(buffer.Length(), " bytes, more than protobuf's 2 GiB"));
  }
  HeadCopier copier(std::move(slices), max_head_bytes);
  if (!copier.CopyMessage(*request.GetDescriptor())) return malformed(copier.error());
  if (!request.ParseFromString(copier.head())) {
    return malformed(
        "a string is not UTF-8, a packed list or a submessage is cut short, or groups do not match "
        "or nest too deep");
  }
  return copier.MakePayloads();
}

}  // namespace attendant::server
