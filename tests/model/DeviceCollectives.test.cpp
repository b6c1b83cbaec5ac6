// SPDX-License-Identifier: Apache-2.0
#include "model/DeviceCollectives.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <vector>

#include "base/Error.hpp"
#include "comm/Group.hpp"
#include "comm/GroupCache.hpp"
#include "comm/nccl/Communicator.hpp"
#include "device/ArenaMemory.hpp"
#include "kernels/LaunchGraph.hpp"
#include "kernels/copy.hpp"
#include "model/RandomFloats.hpp"
#include "support/Bits.hpp"

using namespace taper;

namespace {

// Floats where kernels work.
struct Held {
  explicit Held(std::vector<float> values)
      : memory(static_cast<std::int64_t>(values.size() * sizeof(float))),
        view(reinterpret_cast<float*>(memory.base()), values.size()) {
    copy_from_host(Exec(), view, values);
  }
  std::vector<float> values() const {
    std::vector<float> host(view.size());
    copy_to_host(Exec(), host, ConstFloatVector(view));
    return host;
  }

  ArenaMemory memory;
  FloatVector view;
};

}  // namespace

TEST_CASE("maxima and sums over ranks are those of comm") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const auto rank = static_cast<float>(world.rank()), ranks = static_cast<float>(world.size());
  const Held a({rank, -rank, 5.0f});
  all_reduce_max(Exec(), world, a.view);
  CHECK(a.values() == std::vector<float>{ranks - 1.0f, 0.0f, 5.0f});
  const Held b({rank + 1.0f, 2.0f});
  all_reduce_sum(Exec(), world, b.view);
  CHECK(b.values() == std::vector<float>{ranks * (ranks + 1.0f) / 2.0f, 2.0f * ranks});
}

TEST_CASE("each rank gets its part of a sum") {
  const Group world = Group::world(MPI_COMM_WORLD);
  std::vector<std::int64_t> offsets;
  std::vector<float> all;
  for (int r = 0; r <= world.size(); ++r) offsets.push_back(2 * r);
  for (int i = 0; i < 2 * world.size(); ++i) all.push_back(static_cast<float>(i));
  const Held in(all), out({0.0f, 0.0f});
  reduce_scatter_sum(Exec(), world, out.view, in.view, offsets, {});
  const auto first = static_cast<float>(2 * world.rank() * world.size());
  CHECK(out.values() == std::vector<float>{first, first + static_cast<float>(world.size())});
}

TEST_CASE("partial sums of all ranks are added in the order of the tree") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const int n = world.size();
  const ReductionTree tree(n, 1);
  std::vector<Range> shards;
  for (int r = 0; r < n; ++r) shards.push_back({r, r + 1});
  const TreeReducer reducer(tree, shards);
  const Held partial(std::vector<float>(6, static_cast<float>(world.rank() + 1)));
  const Held sum(std::vector<float>(6, -1.0f));
  const Held room(std::vector<float>(reducer.workspace_floats(2, 3) + 1, 0.0f));
  tree_sum(Exec(), reducer, world, FloatMatrix(sum.view.data(), 2, 3), partial.view.data(),
           room.view.data());
  CHECK(sum.values() == std::vector<float>(6, static_cast<float>(n * (n + 1) / 2)));
}

#if defined(TAPER_CUDA)
TEST_CASE("each rank gets its part of a sum between connected GPUs, in several exchanges") {
  const Exec exec;
  const DivisorChain chain = DivisorChain::of(Group::world(MPI_COMM_WORLD).size());
  GroupCache groups = GroupCache::for_chain(MPI_COMM_WORLD, chain);
  const Group& group = groups.world();
  const int ranks = group.size();
  if (ranks == 1) return;
  REQUIRE(groups.connect_devices(nccl::Communicator::create(groups.world())).empty());
  REQUIRE(group.connects_devices());
  std::vector<std::int64_t> offsets{0};
  for (int r = 0; r < ranks; ++r) offsets.push_back(offsets.back() + 7 + 3 * r);
  std::vector<float> all;
  for (std::int64_t i = 0; i < offsets.back(); ++i)
    all.push_back(static_cast<float>(i + group.rank()));
  const std::int64_t first = offsets[group.rank()], count = offsets[group.rank() + 1] - first;
  std::vector<float> expected;
  for (std::int64_t i = first; i < first + count; ++i)
    expected.push_back(static_cast<float>(ranks * i + ranks * (ranks - 1) / 2));
  const Held in(all), out(std::vector<float>(count, -1.0f)), room(std::vector<float>(4 * ranks));
  reduce_scatter_sum(exec, group, out.view, in.view, offsets, room.view);
  CHECK(out.values() == expected);
  CHECK_THROWS_AS(
      reduce_scatter_sum(exec, group, out.view, in.view, offsets, FloatVector(room.view.data(), 1)),
      Error);
}

// Sums of so few values that they go through windows, of many that NCCL carries, and recorded ones.
TEST_CASE("sums between connected GPUs have the bits of the tree") {
  Exec exec;
  const DivisorChain chain = DivisorChain::of(Group::world(MPI_COMM_WORLD).size());
  GroupCache groups = GroupCache::for_chain(MPI_COMM_WORLD, chain);
  const int ranks = groups.world().size();
  if (ranks == 1) return;
  REQUIRE(groups.connect_devices(nccl::Communicator::create(groups.world())).empty());
  const Group& group = groups.tp_group(ranks);
  // On three ranks each shard brings two partial sums.
  const ReductionTree tree(7, 1);
  std::vector<Range> shards;
  for (int r = 0; r < ranks; ++r) shards.push_back(shard_range(7, ranks, r));
  const TreeReducer reducer(tree, shards);
  if (ranks == 3) REQUIRE(reducer.partials(0) == 2);
  const auto partials_of = [&](int rank, int n, int seed) {
    return test::random_floats(std::int64_t{n} * reducer.partials(rank), 10 * seed + rank);
  };
  const auto expected_of = [&](int n, int seed) {
    std::vector<float> all, sum(static_cast<std::size_t>(n));
    for (int r = 0; r < ranks; ++r) {
      const auto its = partials_of(r, n, seed);
      all.insert(all.end(), its.begin(), its.end());
    }
    run_tree_program(reducer.program(), sum.data(), all.data(), n);
    return sum;
  };
  constexpr int kRows = 3;
  for (const int columns : {1, 50, 700, 50, 100'000}) {
    INFO(columns << " columns");
    const int n = kRows * columns;
    const Held partial(partials_of(group.rank(), n, columns)), sum(std::vector<float>(n, -1.0f)),
        room(std::vector<float>(reducer.workspace_floats(kRows, columns) + 1, 0.0f));
    tree_sum(exec, reducer, group, FloatMatrix(sum.view.data(), kRows, columns),
             partial.view.data(), room.view.data());
    CHECK(test::same_bits(sum.values(), expected_of(n, columns)));
    // In place, on top of what is there.
    const std::vector<float> before = test::random_floats(n, 5);
    const Held x(before), total(std::vector<float>(n, 0.0f));
    tree_sum_and_add(exec, reducer, group, FloatMatrix(x.view.data(), kRows, columns),
                     FloatMatrix(x.view.data(), kRows, columns), partial.view.data(),
                     FloatMatrix(total.view.data(), kRows, columns), room.view.data());
    auto on_top = expected_of(n, columns);
    for (int i = 0; i < n; ++i) on_top[i] = before[i] + on_top[i];
    CHECK(test::same_bits(x.values(), on_top));
  }
  // Two sums in a graph, through windows (each launch is two more turns of them) and NCCL.
  for (const int columns : {30, 100'000}) {
    const int n = kRows * columns;
    const Held partial(partials_of(group.rank(), n, 1)), sums(std::vector<float>(2 * n, -1.0f)),
        room(std::vector<float>(reducer.workspace_floats(kRows, columns) + 1, 0.0f));
    const auto add = [&] {
      for (const int half : {0, 1})
        tree_sum(exec, reducer, group, FloatMatrix(sums.view.data() + n * half, kRows, columns),
                 partial.view.data(), room.view.data());
    };
    add();
    exec.fence();
    const LaunchGraph graph(exec, add);
    CHECK((columns > 30 || graph.size() == 2));
    for (int seed = 2; seed < (columns > 30 ? 4 : 9); ++seed) {
      copy_from_host(exec, partial.view, partials_of(group.rank(), n, seed));
      graph.launch(exec);
      auto expected = expected_of(n, seed);
      expected.insert(expected.end(), expected.begin(), expected.begin() + n);
      CHECK(test::same_bits(sums.values(), expected));
    }
  }
}
#endif
