// SPDX-License-Identifier: Apache-2.0
#include "comm/Collectives.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstdint>
#include <limits>
#include <numeric>

#include "base/Error.hpp"
#include "base/Random.hpp"
#include "comm/GroupCache.hpp"
#include "comm/Progress.hpp"
#include "kernels/Views.hpp"

using namespace taper;

namespace {

// The world in each way of waiting and with messages cut small, and in reversed rank order.
struct Setting {
  const char* name;
  WaitMode wait;
  std::int64_t max_message_bytes;
};

const Setting kSettings[] = {{"blocking", WaitMode::kBlock, 1 << 30},
                             {"yielding", WaitMode::kYield, 1 << 30},
                             {"blocking in pieces", WaitMode::kBlock, 56},
                             {"yielding in pieces", WaitMode::kYield, 56}};

GroupCache make_groups(const Setting& setting, Progress* progress = nullptr) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<int> reversed;
  for (int r = ranks - 1; r >= 0; --r) reversed.push_back(r);
  GroupOptions options{setting.wait, progress, setting.max_message_bytes};
  return GroupCache(MPI_COMM_WORLD, {reversed}, options);
}

// Runs the check on the world and on the reversed world, in every setting; blocking only if
// ranks have their own cores (else each collective takes milliseconds).
template <class Check>
void on_groups(const Check& check) {
  const auto fitting = resolve_wait_mode(WaitMode::kAuto, MPI_COMM_WORLD);
  for (const auto& setting : kSettings) {
    if (setting.wait == WaitMode::kBlock && fitting == WaitMode::kYield) continue;
    const auto groups = make_groups(setting);
    std::vector<int> reversed(groups.world().world_ranks().rbegin(),
                              groups.world().world_ranks().rend());
    INFO(setting.name);
    check(groups.world());
    check(groups.group(reversed));
  }
}

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

template <class T>
std::vector<T> uneven_values(int rank, std::size_t count) {
  RandomStream random(99, RandomPurpose::kTest, 0, static_cast<std::uint64_t>(rank));
  std::vector<T> values(count);
  for (auto& value : values) {
    value = static_cast<T>(random.uniform() - 0.5);
    for (auto n = random.below(9); n > 0; --n) value *= 10;
  }
  return values;
}

// The fixed order, spelled out.
template <class T>
T ordered_sum(const std::vector<std::vector<T>>& of_rank, std::size_t i, int begin, int end) {
  if (end - begin == 1) return of_rank[at(begin)][i];
  const int middle = (begin + end) / 2;
  return ordered_sum(of_rank, i, begin, middle) + ordered_sum(of_rank, i, middle, end);
}

template <class T>
std::vector<std::vector<T>> values_of_all(const Group& group, std::size_t count) {
  std::vector<std::vector<T>> all;
  for (int r = 0; r < group.size(); ++r) all.push_back(uneven_values<T>(r, count));
  return all;
}

template <class T>
void check_ordered_sums(const Group& group, std::size_t count) {
  const auto all = values_of_all<T>(group, count);
  auto data = all[at(group.rank())];
  all_reduce_ordered_sum(group, data);
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE(data[i] == ordered_sum(all, i, 0, group.size()));
  }
}

}  // namespace

TEST_CASE("all_gather puts the data of all ranks in rank order") {
  on_groups([](const Group& group) {
    for (const int count : {0, 1, 3, 100}) {
      std::vector<int> mine(at(count)), all(at(count * group.size()), -1);
      for (int i = 0; i < count; ++i) mine[at(i)] = 1000 * group.rank() + i;
      all_gather(group, all, mine);
      for (int r = 0; r < group.size(); ++r) {
        for (int i = 0; i < count; ++i) REQUIRE(all[at(r * count + i)] == 1000 * r + i);
      }
    }
  });
}

TEST_CASE("all_gather_v takes another count from each rank, also none") {
  on_groups([](const Group& group) {
    std::vector<std::int64_t> counts;
    std::vector<double> expected;
    for (int r = 0; r < group.size(); ++r) {
      counts.push_back(r == 1 ? 0 : 5 * r + 1);
      for (int i = 0; i < counts.back(); ++i) expected.push_back(r + 0.25 * i);
    }
    std::vector<double> mine(static_cast<std::size_t>(counts[at(group.rank())]));
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = group.rank() + 0.25 * double(i);
    std::vector<double> all(expected.size(), -1.0);
    all_gather_v(group, all, mine, counts);
    CHECK(all == expected);
  });
}

TEST_CASE("broadcast sends from any root, any trivially copyable type") {
  struct Triple {
    std::int16_t a;
    double b;
    char c;
  };
  on_groups([](const Group& group) {
    for (int root = 0; root < group.size(); ++root) {
      std::vector<Triple> data(20, Triple{-1, -1.0, '?'});
      if (group.rank() == root) data.assign(20, Triple{std::int16_t(root), 0.5 * root, 'x'});
      broadcast(group, data, root);
      for (const auto& t : data) REQUIRE((t.a == root && t.b == 0.5 * root && t.c == 'x'));
    }
  });
}

TEST_CASE("broadcast_vector sends the length too") {
  on_groups([](const Group& group) {
    for (int root = 0; root < group.size(); ++root)
      for (const int length : {0, 3}) {
        std::vector<std::int64_t> data(static_cast<std::size_t>(group.rank() + 1), -1);
        if (group.rank() == root) data.assign(static_cast<std::size_t>(length), root);
        broadcast_vector(group, data, root);
        REQUIRE(data == std::vector<std::int64_t>(static_cast<std::size_t>(length), root));
      }
  });
}

TEST_CASE("maximum and integer sums") {
  on_groups([](const Group& group) {
    const int n = group.size();
    std::vector<float> floats{float(group.rank()), -float(group.rank()), 3.5f};
    for (int i = 0; i < 40; ++i) floats.push_back(float((group.rank() * 7 + i) % 11));
    all_reduce_max(group, floats);
    CHECK(floats[0] == float(n - 1));
    CHECK(floats[1] == 0.0f);
    CHECK(floats[2] == 3.5f);

    std::vector<double> doubles{0.125 * group.rank(), -std::numeric_limits<double>::infinity()};
    all_reduce_max(group, doubles);
    CHECK(doubles[0] == 0.125 * (n - 1));
    CHECK(doubles[1] == -std::numeric_limits<double>::infinity());

    std::vector<std::int32_t> small{group.rank(), 1};
    std::vector<std::int64_t> large{std::int64_t{1} << 40, group.rank()};
    std::vector<std::uint64_t> masses{std::uint64_t{1} << 62};
    all_reduce_sum(group, small);
    all_reduce_sum(group, large);
    all_reduce_max(group, masses);
    CHECK(small == std::vector<std::int32_t>{n * (n - 1) / 2, n});
    CHECK(large == std::vector<std::int64_t>{(std::int64_t{1} << 40) * n, n * (n - 1) / 2});
    CHECK(masses[0] == std::uint64_t{1} << 62);
  });
}

TEST_CASE("floating sums have the bits of the pairwise tree over ranks, small and large") {
  on_groups([](const Group& group) {
    for (const std::size_t count : {0, 1, 17, 30000}) {
      if (count > 17 && group.max_message_bytes() < 1000) continue;  // thousands of messages
      check_ordered_sums<float>(group, count);
      check_ordered_sums<double>(group, count);
    }
  });
  const auto groups = make_groups(kSettings[1]);
  check_ordered_sums<float>(groups.world(), 300'001);  // several slabs, uneven slices
  check_ordered_sums<double>(groups.world(), 40'003);
}

TEST_CASE("reduce_scatter gives the slices of the ordered sum") {
  const auto check = [](const Group& group, std::int64_t length, bool is_lopsided) {
    std::vector<std::int64_t> offsets{0};
    for (int r = 1; r <= group.size(); ++r) {
      offsets.push_back(is_lopsided && r < group.size() ? length / 50 : length * r / group.size());
    }
    const auto all = values_of_all<float>(group, static_cast<std::size_t>(length));
    const auto& mine = all[at(group.rank())];
    const std::int64_t begin = offsets[at(group.rank())], end = offsets[at(group.rank() + 1)];
    std::vector<float> out(static_cast<std::size_t>(end - begin));
    reduce_scatter_ordered_sum(group, out, mine, offsets);
    for (std::int64_t i = begin; i < end; ++i) {
      REQUIRE(out[static_cast<std::size_t>(i - begin)] ==
              ordered_sum(all, static_cast<std::size_t>(i), 0, group.size()));
    }
  };
  on_groups([&](const Group& group) {
    for (const std::int64_t length : {0, 1, 7, 301}) {
      check(group, length, false);
      check(group, length, true);
    }
  });
  const auto groups = make_groups(kSettings[1]);
  check(groups.world(), 250'007, false);
  check(groups.world(), 250'007, true);
}

TEST_CASE("all_to_all_v delivers every piece, also empty ones") {
  on_groups([](const Group& group) {
    const int n = group.size(), me = group.rank();
    const auto count = [](int from, int to) { return (3 * from + 5 * to) % 7 * 4; };
    std::vector<std::int64_t> in_counts, out_counts;
    std::vector<int> in, expected;
    for (int r = 0; r < n; ++r) {
      in_counts.push_back(count(me, r));
      out_counts.push_back(count(r, me));
      for (int i = 0; i < count(me, r); ++i) in.push_back(10000 * me + 100 * r + i);
      for (int i = 0; i < count(r, me); ++i) expected.push_back(10000 * r + 100 * me + i);
    }
    std::vector<int> out(expected.size(), -1);
    all_to_all_v(group, out, out_counts, in, in_counts);
    CHECK(out == expected);
  });
}

TEST_CASE("texts of all ranks") {
  on_groups([](const Group& group) {
    const auto text_of = [](int rank) { return std::string(at(rank * 30), char('a' + rank)); };
    std::vector<std::string> expected;
    for (int r = 0; r < group.size(); ++r) expected.push_back(text_of(r));
    CHECK(all_gather_string(group, text_of(group.rank())) == expected);
    const int last = group.size() - 1;
    CHECK(first_text(group, group.rank() == last ? "last" : "") == "last");
    CHECK(first_text(group, std::to_string(group.rank())) == "0");
    CHECK(first_text(group, "").empty());
    const int root = group.size() - 1;
    CHECK(broadcast_string(group, group.rank() == root ? "from root" : "mine", root) ==
          "from root");
  });
}

TEST_CASE("views of host memory are buffers") {
  using View = MatrixView<float, HostExec>;
  const auto groups = make_groups(kSettings[1]);
  const Group& world = groups.world();
  std::vector<float> own(6, float(world.rank())), others(6 * world.size());
  const View mine(own.data(), 2, 3), all(others.data(), 2 * world.size(), 3);
  all_gather(world, all, mine);
  for (int r = 0; r < world.size(); ++r) CHECK(all(2 * r + 1, 2) == float(r));
  broadcast(world, mine, world.size() - 1);
  CHECK(mine(0, 0) == float(world.size() - 1));
  all_reduce_ordered_sum(world, mine);
  CHECK(mine(1, 1) == float(world.size() * (world.size() - 1)));
}

TEST_CASE("structs of doubles are summed up member by member") {
  struct Figures {
    double a = 0.0, b = 0.0;
  };
  const auto groups = make_groups(kSettings[1]);
  const Group& world = groups.world();
  const auto figures_of = [](int rank) { return Figures{0.1 * (rank + 1), 1e9 / (rank + 3)}; };
  std::vector<std::vector<double>> numbers;
  for (int r = 0; r < world.size(); ++r) numbers.push_back({figures_of(r).a, figures_of(r).b});
  const auto sum = [&](std::size_t i) { return ordered_sum(numbers, i, 0, world.size()); };
  Figures one = figures_of(world.rank());
  all_reduce_ordered_sum(world, one);
  CHECK(one.a == sum(0));
  CHECK(one.b == sum(1));
  const Figures mine = figures_of(world.rank());
  std::vector<Figures> list{mine, {}, {mine.b, mine.a}};
  all_reduce_ordered_sum(world, list);
  CHECK(list[0].b == sum(1));
  CHECK(list[1].a == 0.0);
  CHECK(list[2].a == sum(1));
  CHECK(list[2].b == sum(0));
}

TEST_CASE("collectives on a group of one are copies and count nothing") {
  const Group self = Group::self();
  std::vector<int> out(2), in{3, 4};
  all_gather(self, out, in);
  CHECK(out == in);
  const std::vector<std::int64_t> two{2};
  out = {0, 0};
  all_gather_v(self, out, in, two);
  CHECK(out == in);
  out = {0, 0};
  all_to_all_v(self, out, two, in, two);
  CHECK(out == in);
  std::vector<float> sum{1.5f, 2.5f}, scattered(2);
  all_reduce_ordered_sum(self, sum);
  reduce_scatter_ordered_sum(self, scattered, sum, std::vector<std::int64_t>{0, 2});
  CHECK(scattered == std::vector{1.5f, 2.5f});
  all_reduce_max(self, in);
  barrier(self);
  CHECK(all_gather_string(self, "x") == std::vector<std::string>{"x"});
  CHECK(self.number() == 0);
}

TEST_CASE("every collective tells its name and a running number") {
  Progress progress;
  const auto groups = make_groups(kSettings[0], &progress);
  const Group& world = groups.world();
  if (world.is_null()) return;
  std::vector<float> data(4);
  barrier(world);
  CHECK(std::string(progress.read().collective) == "barrier");
  CHECK(progress.read().number == 1);
  all_reduce_ordered_sum(world, data);
  all_reduce_max(world, data);
  CHECK(std::string(progress.read().collective) == "all_reduce_max");
  CHECK(progress.read().number == 3);
  CHECK(progress.read().group_size == world.size());
  CHECK_FALSE(progress.read().inside_collective);
}

TEST_CASE("groups do not hear each other") {
  // Two groups of the same ranks: each has its own numbers and its own messages.
  const auto groups = make_groups(kSettings[1]);
  const Group& world = groups.world();
  const Group& reversed = groups.group({world.world_ranks().rbegin(), world.world_ranks().rend()});
  for (int i = 0; i < 50; ++i) {
    std::vector<int> a(at(world.size())), b(a.size());
    all_gather(world, a, std::vector{i + world.rank()});
    all_gather(reversed, b, std::vector{100 * i + reversed.rank()});
    for (int r = 0; r < world.size(); ++r) {
      REQUIRE(a[at(r)] == i + r);
      REQUIRE(b[at(r)] == 100 * i + r);
    }
  }
}
