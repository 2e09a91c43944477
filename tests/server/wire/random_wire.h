// RandomWire, which makes random protobuf messages at wire level: everything that a parser has to
// accept, and some of what it has to refuse.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace attendant::server {

// Returns `value` as a varint of at least `bytes` bytes.
std::string WireVarint(uint64_t value, int bytes = 1);
std::string WireTag(int number, int wire_type, int bytes = 1);
// Returns the length-delimited field `number` with this content.
std::string WireField(int number, const std::string& content);

// Deterministic for each seed. Not thread-safe.
class RandomWire {
 public:
  explicit RandomWire(uint32_t seed) : random_(seed) {}

  // Returns the fields of `type` in any order, absent, repeated or merged, with packed and unpacked
  // scalars, overlong varints, unknown fields and wrong wire types, and now and then something
  // malformed.
  std::string Message(const google::protobuf::Descriptor* type, int depth = 0);

  // Returns `bytes` with a few bytes changed, removed, doubled or inserted, or with its end cut
  // off.
  std::string Mutate(std::string bytes);

  // Returns `bytes` cut into slices at random places; some slices are empty.
  grpc::ByteBuffer Slices(const std::string& bytes);

  // Returns a number in [0, bound).
  int Below(int bound);

 private:
  std::string Field(const google::protobuf::FieldDescriptor& field, int depth);
  std::string Packed(const google::protobuf::FieldDescriptor& field);
  std::string Content(const google::protobuf::FieldDescriptor& field, int depth);
  std::string UnknownField(int number, int depth);
  std::string Scalar(int wire_type);
  std::string Bytes(int size);
  std::string Text();
  std::string Tag(int number, int wire_type);
  std::string LengthDelimited(int number, const std::string& content);
  bool OneIn(int n) { return Below(n) == 0; }

  std::mt19937 random_;
};

// Returns `bytes` cut into slices at these ascending offsets.
grpc::ByteBuffer CutAt(const std::string& bytes, const std::vector<size_t>& offsets);

// Returns `bytes` in slices of `size` bytes.
grpc::ByteBuffer InSlicesOf(const std::string& bytes, size_t size);

// Returns all bytes of `buffer`.
std::string Flatten(const grpc::ByteBuffer& buffer);

}  // namespace attendant::server
