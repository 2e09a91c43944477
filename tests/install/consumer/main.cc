// Program that runs the worked example through the installed engine.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "engine/checkpoint/checkpoint.h"
#include "engine/layers/encoder.h"

#ifdef WITH_CLIENT
bool ClientReportsAnUnreachableServer();
#endif

int main() {
  auto checkpoint = attendant::OpenCheckpoint("worked-example", {});
  if (!checkpoint.ok()) return std::puts(checkpoint.status().ToString().c_str()), EXIT_FAILURE;
  auto encoder = attendant::Encoder::Load(checkpoint->description, *checkpoint->weights,
                                          [](int64_t, int64_t) {});
  if (!encoder.ok()) return std::puts(encoder.status().ToString().c_str()), EXIT_FAILURE;

  attendant::EncoderRun run(*encoder, /*max_tokens=*/3, /*threads=*/1);
  const float hidden_states[3][4] = {{1, 0, 1, 0}, {0, 2, 0, 2}, {1, 1, 1, 1}};
  for (int row = 0; row < 3; ++row) std::copy_n(hidden_states[row], 4, run.input().row(row));
  const int32_t cu_seqlens[] = {0, 3};
  attendant::RunObserver observer;
  auto context = run.Attend(0, attendant::AttendStage::kContext, {cu_seqlens, {}}, observer);
  if (!context.ok()) return std::puts(context.status().ToString().c_str()), EXIT_FAILURE;

  const float* row = context->row(0);
  std::printf("%.6f %.6f %.6f\n", row[0], row[1], row[2]);
  const bool exact = std::fabs(row[0] - 1.936621062f) < 2e-6f &&
                     std::fabs(row[1] - 6.683105308f) < 2e-6f &&
                     std::fabs(row[2] - 1.595068407f) < 2e-6f;
#ifdef WITH_CLIENT
  if (!ClientReportsAnUnreachableServer()) return EXIT_FAILURE;
#endif
  return exact ? EXIT_SUCCESS : EXIT_FAILURE;
}
