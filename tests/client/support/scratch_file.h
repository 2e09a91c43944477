// Files of tests, which are removed at the end of the test program.
#pragma once

#include <string>

namespace attendant::client {

// Returns a path in a folder that belongs only to the running test.
std::string ScratchPath(const std::string& name);

// Writes `bytes` to such a path and returns it.
std::string ScratchFile(const std::string& name, const std::string& bytes);

std::string FileBytes(const std::string& path);

}  // namespace attendant::client
