// SPDX-License-Identifier: Apache-2.0
#include "comm/Affinity.hpp"

#include <sched.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("the cores are those of the mask, however small the first guess was") {
  const auto cores = affinity_cores();
  REQUIRE(!cores.empty());
  CHECK(std::is_sorted(cores.begin(), cores.end()));
  for (const int guess : {0, 1024, 5000}) CHECK(affinity_cores(guess) == cores);
}

TEST_CASE("a pinned thread has one core") {
  const auto cores = affinity_cores();
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int core : cores)
    if (core < CPU_SETSIZE) CPU_SET(core, &mask);
  for (const int core : {cores.front(), cores.back()}) {
    if (core >= CPU_SETSIZE) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0) SKIP("threads cannot be pinned here");
    CHECK(affinity_cores() == std::vector<int>{core});
  }
  sched_setaffinity(0, sizeof(mask), &mask);
}
