// SPDX-License-Identifier: Apache-2.0
//
// One rank's kernel, beside a window of another rank and what that one would have sent. Sums of
// several ranks are in tests/model/DeviceCollectives.test.cpp.
#include "kernels/peer_sum.hpp"

#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>

#include "kernels/canonical/product.hpp"
#include "kernels/ops/Data.hpp"
#include "shard/ReductionTree.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr std::int64_t kPart = 4000;
const float kNothing = std::bit_cast<float>(0xffffffffu);

bool is_nothing(float value) {
  return std::bit_cast<std::uint32_t>(value) == 0xffffffffu;
}

}  // namespace

TEST_CASE("a rank adds what others have sent, sends its own, and clears what it used before") {
  flush_denormals();
  const Exec exec;
  Floats mine(kPeerParts * kPart, kNothing), other = mine;
  Staged<PeerTurns> turns(1);
  const PeerWindows peers{1, 2, {other.data(), mine.data()}, turns.data(), kPart};
  std::int64_t used = 0;
  for (std::uint32_t turn = 0; turn < 8; ++turn) {
    INFO("sum " << turn);
    // Rank 0 brings three partial sums, rank 1 two; more and fewer values than there are threads.
    const int n = turn % 3 == 0 ? 7 : 600 + static_cast<int>(turn);
    const std::vector<int> counts{3, 2}, program = ReductionTree(5, 1).local_program({0, 5});
    Floats all = random_floats(std::int64_t{5} * n, static_cast<int>(turn), -1e3, 1e3), sums(n);
    if (turn == 4) all[3 * n + 1] = kNothing;  // a NaN like any other
    float* const part = mine.data() + turn % kPeerParts * kPart;
    std::copy_n(all.begin(), 3 * n, part);
    peer_sum(exec, view(sums), nullptr, all.data() + 3 * n, counts, program, peers);
    exec.fence();
    bool is_equal = true, is_sent = true;
    for (int i = 0; i < n; ++i) {
      std::vector<float> column;
      for (int v = 0; v < 5; ++v) column.push_back(all[v * n + i]);
      const float expected = canonical::run_tree(program, column).front();
      is_equal &= sums[i] == expected || (sums[i] != sums[i] && expected != expected);
    }
    const float* const sent = other.data() + turn % kPeerParts * kPart;
    for (int i = 3 * n; i < 5 * n; ++i)
      is_sent &=
          sent[i] == all[i] || (all[i] != all[i] && sent[i] != sent[i] && !is_nothing(sent[i]));
    CHECK(is_equal);
    CHECK(is_sent);
    const float* const before = mine.data() + (turn + 2) % kPeerParts * kPart;
    CHECK(std::all_of(before, before + used, is_nothing));
    used = 5 * n;
    CHECK(turns[0].part == (turn + 1) % kPeerParts);
    CHECK(turns[0].arrived == 0);
    CHECK(turns[0].used[turn % kPeerParts] == used);
    // As the other rank would do it.
    std::fill_n(other.data() + turn % kPeerParts * kPart, used, kNothing);
  }
}

TEST_CASE("one rank alone adds its partial sums") {
  const Exec exec;
  Floats window(kPeerParts * kPart, kNothing), sums(500, 2.5f);  // added to what is there
  Staged<PeerTurns> turns(1);
  const Floats partials = random_floats(3 * 500, 9);
  const std::vector<int> program = ReductionTree(3, 1).local_program({0, 3});
  peer_sum(exec, view(sums), sums.data(), partials.data(), std::vector{3}, program,
           {0, 1, {window.data()}, turns.data(), kPart});
  exec.fence();
  for (int i = 0; i < 500; ++i) {
    const std::vector<float> column{partials[i], partials[500 + i], partials[1000 + i]};
    REQUIRE(sums[i] == 2.5f + canonical::run_tree(program, column).front());
  }
}
