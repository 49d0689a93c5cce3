// serving / cpu.simulated_<policy>: every step takes what it would on the problem's machine (reference/serving/
// step_cost.hpp), and nothing is computed: figures are those of the cost model, on any machine.
#include "harness/operator/variant.hpp"
#include "kernels/serving/cost_model.hpp"
#include "kernels/serving/serve.hpp"

namespace inferometer {
namespace {

template <ServingPolicy kPolicy>
void run(const ServingProblem& problem, const ServingTensors& tensors, const Launch&) {
  CostModel model(step_cost(problem, achieved_rates(problem)));
  serve(problem, kPolicy, model, ServingClock::simulated, tensors.run);
}

const RegisterVariant<Serving> static_batch{{
    .name = "cpu.simulated_static",
    .summary = "simulated on problem.machine: a batch runs until its last request has ended",
    .run = &run<ServingPolicy::static_batch>,
}};

const RegisterVariant<Serving> iteration{{
    .name = "cpu.simulated_iteration",
    .summary = "simulated on problem.machine: requests join and leave at every step, room reserved",
    .run = &run<ServingPolicy::iteration>,
}};

const RegisterVariant<Serving> continuous{{
    .name = "cpu.simulated_continuous",
    .summary = "simulated on problem.machine: blocks as tokens come, the latest request preempted",
    .run = &run<ServingPolicy::continuous>,
}};

const RegisterVariant<Serving> chunked{{
    .name = "cpu.simulated_chunked",
    .summary = "simulated on problem.machine: a budget of tokens a step, prompts in chunks",
    .unsupported = &budget_too_small,
    .run = &run<ServingPolicy::chunked>,
}};

}  // namespace
}  // namespace inferometer
