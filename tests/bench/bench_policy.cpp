// SPDX-License-Identifier: Apache-2.0
//
// Time of one decision of the layout policy against the number of ranks, on described snapshots: in
// the aligned phase (all ranks busy), where the tail begins, and deep in it.
//
//   bench_policy [most ranks]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "predict/LengthLaw.hpp"
#include "predict/Policy.hpp"
#include "tests/support/synthetic_profile.hpp"

using namespace taper;

namespace {

// `alive` sequences of 400 tokens, an eighth more at each of the first half of the replicas.
Snapshot snapshot(const Layout& layout, int alive, std::int64_t consultation) {
  Snapshot s{layout, std::vector<ReplicaSnapshot>(layout.groups().size()),
             2'000'000'000 + consultation * 50'000'000, consultation, 0};
  for (int i = 0; i < alive; ++i) {
    const std::size_t n = s.replicas.size();
    ReplicaSnapshot& r = s.replicas[i % 9 == 0 ? i / 9 % (n / 2) : i % n];
    ++r.lengths[length_bucket(400)];
    r.response += 400;
    r.context += 500;
    r.longest = 500;
  }
  return s;
}

double microseconds(Policy& policy, const Layout& layout, int alive, std::int64_t& consultation) {
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    const Snapshot s = snapshot(layout, alive, consultation++);
    const auto start = std::chrono::steady_clock::now();
    const Decision decision = policy.decide(s);
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
            .count());
    if (decision.hash == 0) std::abort();
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int most = argc > 1 ? std::atoi(argv[1]) : 1024;
  std::printf("%6s %14s %14s %14s %14s %14s %14s\n", "ranks", "64 per rank", "32 per rank",
              "16 per rank", "8 per rank", "1 per rank", "few");
  for (int ranks = 2; ranks <= most; ranks *= 2) {
    std::vector<int> degrees;
    for (int tp = 1; tp <= std::min(ranks, 16); tp *= 2) degrees.push_back(tp);
    const DivisorChain chain = DivisorChain::of(ranks);
    PolicyOptions options;
    options.mode = PolicyMode::kAdvise;
    Policy policy(test::synthetic_profile(test::small_model_tcp(), degrees), chain, options);
    Workload work;
    work.sequences = 64 * ranks;
    work.prompt_tokens = 100 * work.sequences;
    work.max_new_tokens = 1024;
    const auto lengths = draw_lengths(LengthLaw::kHeavyTail, 1, 0, work.sequences, 1024);
    std::vector<Outcome> outcomes;
    for (int i = 0; i < work.sequences; ++i) outcomes.push_back({i, 100, lengths[i], false});
    policy.begin(work);
    policy.finish(outcomes, 1'000'000'000);
    work.iteration = 1;
    const Layout layout = Layout::uniform(1, chain);
    policy.begin(work);
    std::int64_t consultation = 0;
    std::printf("%6d", ranks);
    for (const int alive : {64 * ranks, 32 * ranks, 16 * ranks, 8 * ranks, ranks, 4})
      std::printf(" %11.0f us", microseconds(policy, layout, alive, consultation));
    std::printf("\n");
  }
  return 0;
}
