#include "server/thread_plan.h"

#include <algorithm>

namespace attendant::server {

ThreadPlan MakeThreadPlan(const Settings& settings, const CpuBudget& budget) {
  ThreadPlan plan;
  plan.instances = settings.instances;
  plan.threads_per_instance = settings.threads_per_instance;
  plan.row_policy = settings.row_plan;
  if (plan.instances == 0) {
    plan.instances = plan.threads_per_instance == 0
                         ? 1
                         : std::max(budget.threads / plan.threads_per_instance, 1);
  }
  if (plan.threads_per_instance == 0) {
    plan.threads_per_instance = std::max(budget.threads / plan.instances, 1);
  }
  return plan;
}

}  // namespace attendant::server
