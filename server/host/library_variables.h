// Environment variables that libraries read before main runs.
#pragma once

namespace attendant::server {

// Sets the variables that the user has not set, and executes this program again, because that is
// the only way for their libraries to see them:
// - GOMP_SPINCOUNT, unless there is OMP_WAIT_POLICY: a low limit of the time for which libgomp's
//   threads spin while they wait for work.
// - GLIBC_TUNABLES: freed memory that the C library caches for each thread is limited to small
//   blocks. The linker does not let privileged programs, such as one with file capabilities, have
//   it.
// Returns if there is nothing to set, or if the program cannot be executed again. Must be the first
// call in main.
void SetLibraryVariables(char** argv);

}  // namespace attendant::server
