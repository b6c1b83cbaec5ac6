// SPDX-License-Identifier: Apache-2.0
//
// Time of one decision of the planner against the number of ranks, on described snapshots: in
// the aligned phase (all ranks busy), where the tail begins, and deep in it. Prints the median of
// many decisions for each load, and the longest one of all loads.
//
//   bench_planner [most ranks] [searches for each load]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "planner/Planner.hpp"
#include "tests/support/heavy_tail.hpp"
#include "tests/support/synthetic_profile.hpp"

using namespace taper;

namespace {

const std::int64_t kPeriod = PlannerOptions().consult_ns;

// `alive` sequences of 400 tokens, an eighth more at each of the first half of the replicas.
Snapshot snapshot(const Layout& layout, int alive, std::int64_t consultation) {
  Snapshot s{layout, std::vector<ReplicaSnapshot>(layout.groups().size()),
             2'000'000'000 + consultation * kPeriod, consultation, 0};
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

// Processor time of this thread, in us: what others do on the machine does not count.
double thread_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

// Times in us of the decisions of so many searches for plans, which may take several decisions
// each, ascending. Every search begins with what the planner knew before it: what one has found
// does not spare the next one its work. Searches differ a little in their sequences. Each is made
// three times, always the same: the least time of a decision is its own, without disturbances.
std::vector<double> microseconds(Planner& planner, const Workload& work, const Layout& layout,
                                 int alive, int searches) {
  planner.begin(work);
  planner.decide(snapshot(layout, alive, 0));
  const auto before = planner.save();
  std::vector<double> times;
  for (int search = 0; search < searches; ++search) {
    const int count = std::max(1, alive - search % 8);
    std::vector<double> least;
    for (int again = 0; again < 3; ++again) {
      planner.begin(work);  // forgets plans
      planner.load(before);
      bool goes_on = true;
      for (std::int64_t consultation = 1; goes_on; ++consultation) {
        const Snapshot s = snapshot(layout, count, consultation);
        const double start = thread_us();
        const Decision decision = planner.decide(s);
        const double time = thread_us() - start;
        if (decision.hash == 0) std::abort();
        if (again == 0)
          least.push_back(time);
        else
          least[consultation - 1] = std::min(least[consultation - 1], time);
        goes_on = decision.prices.empty() && decision.wait_ns == 0;  // the search at the next one
      }
    }
    times.insert(times.end(), least.begin(), least.end());
  }
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  const int most = argc > 1 ? std::atoi(argv[1]) : 1024;
  const int searches = argc > 2 ? std::atoi(argv[2]) : 100;
  std::printf("%6s %14s %14s %14s %14s %14s %14s %14s\n", "ranks", "64 per rank", "32 per rank",
              "16 per rank", "8 per rank", "1 per rank", "few", "longest of all");
  for (int ranks = 2; ranks <= most; ranks *= 2) {
    std::vector<int> degrees;
    for (int tp = 1; tp <= std::min(ranks, 16); tp *= 2) degrees.push_back(tp);
    const DivisorChain chain = DivisorChain::of(ranks);
    const Layout layout = Layout::uniform(1, chain);
    PlannerOptions options;
    options.mode = PlannerMode::kAdvise;
    options.initial = to_string(layout);
    Planner planner(test::synthetic_profile(test::small_model_tcp(), degrees), chain, options);
    const Workload work = test::learn_heavy_tail(planner, 64 * ranks);
    double longest = 0;
    std::printf("%6d", ranks);
    for (const int alive : {64 * ranks, 32 * ranks, 16 * ranks, 8 * ranks, ranks, 4}) {
      const auto times = microseconds(planner, work, layout, alive, searches);
      std::printf(" %11.0f us", times[times.size() / 2]);
      longest = std::max(longest, times.back());
    }
    std::printf(" %11.0f us\n", longest);
  }
  return 0;
}
