// Fuzz targets: functions that read bytes as some part of Attendant reads those of strangers.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace attendant {

struct FuzzTarget {
  const char* name;  // also of its folder in tests/fuzz/corpus
  // Returns what is wrong, of what must hold for every input; nothing if all is well. Sanitizers
  // report the rest. May keep state between calls that does not change what they do. Not
  // thread-safe.
  std::string (*run)(absl::string_view input);
};

// All targets.
absl::Span<const FuzzTarget> FuzzTargets();

// Whether the slice codec and the generated parser accept the same messages and read the same
// fields from them. The first byte chooses the type of the message and the size of the slices.
std::string FuzzRequestCodec(absl::string_view input);

// The reading and checking of requests, up to where they would be queued. The first byte chooses
// the method and the size of the slices.
std::string FuzzRequest(absl::string_view input);

// The header of a safetensors file; the first four bytes are the size of the data that follows it.
// What is accepted must describe each byte of the data exactly once.
std::string FuzzSafetensors(absl::string_view input);

// A config.json of a published model.
std::string FuzzConfig(absl::string_view input);

// A folder of a model: the files that kFolderFiles in weight_files.cc lists, each ended by a byte
// 255, which is in no UTF-8 text. An empty file is left out.
std::string FuzzFolder(absl::string_view input);

// What a connection sends to the HTTP port. The port must close the connection, and still answer
// others.
std::string FuzzHttp(absl::string_view input);

// The body of an inference request over HTTP, up to where it would be queued. The first byte
// chooses the size of the slices, the second how many bytes are behind the JSON.
std::string FuzzInferJson(absl::string_view input);

// The body of a request of a text API, which is read to a task or refused. The first byte chooses
// the route, and what the model is for.
std::string FuzzTextForm(absl::string_view input);

// Two texts, which are tokenized alone and as a pair, ended by a byte 255. The first byte chooses a
// tokenizer; from 128 on it is the tokenizer.json that is before the texts, ended like them.
std::string FuzzTokenizer(absl::string_view input);

}  // namespace attendant
