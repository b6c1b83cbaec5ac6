// SPDX-License-Identifier: Apache-2.0
//
// A thousand changes of layout in one process, with ranks that sleep at random: nothing hangs,
// nothing grows, nothing changes a token.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "comm/Collectives.hpp"
#include "reshape/Fleet.hpp"

using namespace taper;
using namespace taper::test;

namespace {

EngineOptions options(const GoldenModel& m, int tp) {
  EngineOptions o;
  o.scheduler = {6 * tp, 40 + 6 * tp, 64};
  o.kv_blocks = 12 * tp;
  o.max_positions = kPositions;
  o.valid_ids = m.config.vocab;
  o.logit_rows = 16;
  return o;
}

int open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<int>(std::distance(begin(files), end(files)));
}

// Resident memory without what MPI shares between processes, in KB.
long private_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    long value = 0;
    if (key == "RssAnon:" && status >> value) return value;
    status.ignore(256, '\n');
  }
  return 0;
}

}  // namespace

TEST_CASE("a thousand changes with ranks that sleep at random") {
  const int ranks = Group::world(MPI_COMM_WORLD).size();
  const DivisorChain chain = DivisorChain::of(ranks);
  Fleet fleet("llama_b", chain, 1, options);
  const std::vector<std::string> layouts =
      ranks == 2 ? std::vector<std::string>{"1x2", "2x1"}
                 : std::vector<std::string>{"1x4", "2x2", "4x1", "2+1+1", "1+1+2"};
  SamplingOptions sampling;
  sampling.seed = 4;
  std::vector<Request> requests;
  for (int i = 0; i < 8; ++i)
    requests.push_back({{i, 0}, 1 + i % 2, random_prompt(i, 30 + 17 * i, 331), 30});
  const Group self = Group::self();
  GoldenModel whole("llama_b", self);
  const Generation reference = generate(whole, roomy(whole), sampling, {}, requests);

  RandomStream shared(8, RandomPurpose::kTest, 0, 0),
      mine(8, RandomPurpose::kTest, 1, static_cast<std::uint64_t>(fleet.rank()));
  const int groups = fleet.groups.count();
  int files = 0;
  long memory = 0;
  int changes = 0, generations = 0;
  while (changes < 1000) {
    fleet.begin(layouts[shared.below(layouts.size())], sampling, {}, requests);
    for (int i = 0; i < 12; ++i) {
      for (std::uint64_t s = 1 + shared.below(3); s > 0; --s) {
        if (mine.below(8) == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(mine.below(2000)));
        fleet.step();
      }
      const Switch next{layouts[shared.below(layouts.size())], static_cast<Kv>(shared.below(3)),
                        shared.below(4) == 0};
      REQUIRE(fleet.reshape(next).done);
      ++changes;
    }
    fleet.finish();
    REQUIRE(difference(reference, fleet) == "");
    if (++generations == 20) {
      files = open_files();
      memory = private_memory();
    }
  }
  CHECK(fleet.groups.count() == groups);
  CHECK(open_files() == files);
  CHECK(private_memory() - memory < 4096);
}
