#include <iostream>

#include "client/commands/command_line.h"

int main(int argc, char** argv) {
  return attendant::client::RunCommandLine(argc, argv, std::cout, std::cerr);
}
