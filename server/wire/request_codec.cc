#include "server/wire/request_codec.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "server/wire/slice_reader.h"
#include "server/wire/tensor_fields.h"

namespace attendant::server {
namespace {

using google::protobuf::internal::WireFormatLite;

constexpr int kLongestVarint = 10;
constexpr int kLongestTag = 5;
constexpr int kLongestLength = 5;

struct ByteRange {
  int64_t offset;
  int64_t size;
};

std::string Varint(uint64_t value) {
  uint8_t bytes[kLongestVarint];
  const uint8_t* end = google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, bytes);
  return std::string(reinterpret_cast<const char*>(bytes), static_cast<size_t>(end - bytes));
}

// Copies a message into `head` unchanged, without the `data` of its tensors. It applies protobuf's
// rules only as far as is needed to find that data. The copied bytes need not be valid: protobuf
// meets them in the head just as it would have in the message, and refuses them there.
class HeadCopier {
 public:
  HeadCopier(const MessageSlices& slices, const TensorFields& fields, int64_t max_head_bytes)
      : reader_(slices),
        max_head_bytes_(max_head_bytes),
        fields_(fields),
        data_(fields.payloads.size()) {}

  // Returns false if the message is refused; error() then says why.
  bool CopyMessage(const TensorField& message) { return CopyFields(message, reader_.size()); }

  const std::string& head() const { return head_; }
  // The bytes of the message that hold the data of each field, indexed as TensorFields::payloads.
  const std::vector<std::vector<ByteRange>>& data() const { return data_; }
  std::string error() const { return absl::StrCat("at byte ", reader_.position(), ": ", error_); }

 private:
  bool CopyFields(const TensorField& message, int64_t end) {
    while (reader_.position() < end) {
      const size_t tag_at = head_.size();
      uint32_t tag;
      if (!CopyTag(end, tag)) return false;
      const auto wire_type = WireFormatLite::GetTagWireType(tag);
      const auto tensor = message.fields.find(WireFormatLite::GetTagFieldNumber(tag));
      if (wire_type != WireFormatLite::WIRETYPE_LENGTH_DELIMITED ||
          tensor == message.fields.end()) {
        if (!CopyValue(wire_type, end)) return false;
      } else if (tensor->second.payload >= 0) {
        head_.resize(tag_at);
        if (!TakeData(tensor->second.payload, end)) return false;
      } else if (!CopySubmessage(tensor->second, end)) {
        return false;
      }
    }
    return true;
  }

  bool TakeData(int payload, int64_t end) {
    int64_t size;
    if (!ReadLength(end, size)) return false;
    std::vector<ByteRange>& data = data_[static_cast<size_t>(payload)];
    if (!fields_.payloads[static_cast<size_t>(payload)].repeated) data.clear();
    if (static_cast<int64_t>(data.size()) == kMostRepeatedPayloads) {
      return Fail(absl::StrCat("more than ", kMostRepeatedPayloads, " elements in one field"));
    }
    data.push_back({reader_.position(), size});
    reader_.Skip(size);
    return true;
  }

  bool CopySubmessage(const TensorField& message, int64_t end) {
    int64_t size;
    if (!CountField() || !ReadLength(end, size)) return false;
    const size_t start = head_.size();
    if (!CopyFields(message, reader_.position() + size)) return false;
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
           Fail(absl::StrCat("more than ", max_head_bytes_, " bytes besides the tensor data"));
  }

  bool Fail(std::string error) {
    error_ = std::move(error);
    return false;
  }

  SliceReader reader_;
  const int64_t max_head_bytes_;
  std::string head_;
  int64_t fields_copied_ = 0;
  const TensorFields& fields_;
  std::vector<std::vector<ByteRange>> data_;
  std::string error_;
};

}  // namespace

absl::StatusOr<std::vector<TensorPayload>> ParseRequest(const grpc::ByteBuffer& buffer,
                                                        int64_t max_head_bytes,
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
  const TensorFields& fields = TensorFieldsOf(request.GetDescriptor());
  HeadCopier copier(*slices, fields, max_head_bytes);
  if (!copier.CopyMessage(fields.root)) return malformed(copier.error());
  if (!request.ParseFromString(copier.head())) {
    return malformed(
        "a string is not UTF-8, a packed list or a submessage is cut short, or groups do not match "
        "or nest too deep");
  }
  std::vector<TensorPayload> payloads;
  for (size_t i = 0; i < fields.payloads.size(); ++i) {
    const PayloadField& field = fields.payloads[i];
    const std::vector<ByteRange>& data = copier.data()[i];
    for (size_t j = 0; j < data.size(); ++j) {
      std::vector<int> path = field.path;
      if (field.repeated) path.push_back(static_cast<int>(j));
      payloads.push_back({std::move(path), Payload(slices, data[j].offset, data[j].size)});
    }
  }
  return payloads;
}

const Payload* FindPayload(const std::vector<TensorPayload>& payloads,
                           const std::vector<int>& path) {
  const auto found = std::find_if(payloads.begin(), payloads.end(),
                                  [&](const TensorPayload& tensor) { return tensor.path == path; });
  return found == payloads.end() ? nullptr : &found->data;
}

}  // namespace attendant::server
