// Handling of the stop signals, SIGTERM and SIGINT.
#pragma once

namespace attendant::server {

// Blocks the two signals in the calling thread and starts a thread that waits for them. Call it
// before starting other threads, which inherit the blocked signals. Until KeepStopSignal, while no
// request has been accepted, a signal ends the process at once with exit code 128 + its number.
// Also makes the process ignore SIGPIPE.
void TakeStopSignals();

// Keeps the next signal for AwaitStopSignal. A second signal at least half a second later ends the
// process at once, as above. An earlier one is ignored, because shells and `timeout` send theirs
// twice, to the process and to its group.
void KeepStopSignal();

// Waits until the first signal has arrived.
void AwaitStopSignal();

}  // namespace attendant::server
