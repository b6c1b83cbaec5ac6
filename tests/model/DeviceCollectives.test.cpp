// SPDX-License-Identifier: Apache-2.0
#include "model/DeviceCollectives.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "comm/Group.hpp"
#include "device/ArenaMemory.hpp"
#include "kernels/copy.hpp"

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
