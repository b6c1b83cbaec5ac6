// SPDX-License-Identifier: Apache-2.0
//
// What the counted collectives do not show: raw bytes, pieces smaller than an element, and that
// nothing is counted. Their results are tested by Collectives.test.cpp.
#include "comm/mpi/Transport.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/Error.hpp"
#include "comm/Progress.hpp"
#include "support/Scratch.hpp"

using namespace taper;

namespace {

using Bytes = std::vector<std::byte>;
using Sizes = std::vector<std::int64_t>;

// Runs the check on the world in each way of waiting and with messages of several sizes; blocking
// only if ranks have their own cores.
template <class Check>
void on_worlds(const Check& check) {
  const auto fitting = resolve_wait_mode(WaitMode::kAuto, MPI_COMM_WORLD);
  for (const WaitMode wait : {WaitMode::kBlock, WaitMode::kYield})
    for (const std::int64_t most : {1 << 30, 56, 4}) {
      if (wait == WaitMode::kBlock && fitting == WaitMode::kYield) continue;
      INFO((wait == WaitMode::kBlock ? "blocking" : "yielding") << ", messages of " << most);
      GroupOptions options;
      options.wait = wait;
      options.max_message_bytes = most;
      check(Group::world(MPI_COMM_WORLD, options));
    }
}

// What rank `from` sends to rank `to`; others than that of any other pair.
Bytes piece(int from, int to, std::int64_t bytes) {
  Bytes data(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<std::byte>(100 * from + 10 * to + static_cast<int>(i % 10));
  return data;
}

void append(Bytes& data, const Bytes& more) {
  data.insert(data.end(), more.begin(), more.end());
}

}  // namespace

TEST_CASE("broadcast brings the bytes of any root to all") {
  on_worlds([](const Group& world) {
    for (int root = 0; root < world.size(); ++root)
      for (const std::int64_t bytes : {0, 1, 4, 57, 200}) {
        Bytes data = piece(world.rank(), 0, bytes);
        mpi::broadcast(world, data.data(), bytes, root);
        REQUIRE(data == piece(root, 0, bytes));
      }
  });
}

TEST_CASE("all_gather puts equal, unequal and empty contributions in rank order") {
  on_worlds([](const Group& world) {
    for (const int kind : {0, 1, 2}) {
      Sizes sizes;
      Bytes expected;
      for (int r = 0; r < world.size(); ++r) {
        sizes.push_back(kind == 0 ? 9 : kind == 1 ? 40 * r : 0);
        append(expected, piece(r, 0, sizes.back()));
      }
      const Bytes mine = piece(world.rank(), 0, sizes[static_cast<std::size_t>(world.rank())]);
      Bytes all(expected.size());
      mpi::all_gather(world, all.data(), mine.data(), sizes);
      REQUIRE(all == expected);
    }
  });
}

TEST_CASE("all_reduce works on whole elements, also where a message is smaller than one") {
  on_worlds([](const Group& world) {
    const int n = world.size();
    std::vector<std::int64_t> sums, largest;
    for (int i = 0; i < 20; ++i) {
      sums.push_back((std::int64_t{1} << 40) * i + world.rank());
      largest.push_back((i + world.rank()) % n);
    }
    mpi::all_reduce(world, sums.data(), 20, sizeof(std::int64_t), MPI_INT64_T, MPI_SUM);
    mpi::all_reduce(world, largest.data(), 20, sizeof(std::int64_t), MPI_INT64_T, MPI_MAX);
    for (int i = 0; i < 20; ++i) {
      REQUIRE(sums[static_cast<std::size_t>(i)] ==
              (std::int64_t{1} << 40) * i * n + n * (n - 1) / 2);
      REQUIRE(largest[static_cast<std::size_t>(i)] == n - 1);
    }
    mpi::all_reduce(world, nullptr, 0, sizeof(std::int64_t), MPI_INT64_T, MPI_SUM);
  });
}

TEST_CASE("all_to_all delivers the piece of every pair of ranks") {
  on_worlds([](const Group& world) {
    const auto size = [](int from, int to) { return std::int64_t{(3 * from + 5 * to) % 7 * 17}; };
    Sizes in_sizes, out_sizes;
    Bytes in, expected;
    for (int r = 0; r < world.size(); ++r) {
      in_sizes.push_back(size(world.rank(), r));
      out_sizes.push_back(size(r, world.rank()));
      append(in, piece(world.rank(), r, in_sizes.back()));
      append(expected, piece(r, world.rank(), out_sizes.back()));
    }
    Bytes out(expected.size());
    mpi::all_to_all(world, out.data(), out_sizes, in.data(), in_sizes);
    REQUIRE(out == expected);
  });
}

TEST_CASE("all_to_all refuses a rank that sends itself other than it expects") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const Sizes in_sizes(static_cast<std::size_t>(world.size()), 4);
  const Sizes out_sizes(in_sizes.size(), 8);
  const Bytes in(4 * in_sizes.size());
  Bytes out(8 * in_sizes.size());
  CHECK_THROWS_MATCHES(
      mpi::all_to_all(world, out.data(), out_sizes, in.data(), in_sizes), Error,
      Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(
          "rank " + std::to_string(world.rank()) + " sends itself 4 bytes, expects 8")));
}

TEST_CASE("nobody leaves a barrier before the last one came") {
  on_worlds([](const Group& world) {
    const test::Scratch scratch;
    if (world.rank() == world.size() - 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      test::spill(scratch / "last", "came");
    }
    mpi::barrier(world);
    CHECK(std::filesystem::exists(scratch / "last"));
  });
}

TEST_CASE("parts of a collective are neither counted nor told") {
  Progress progress;
  GroupOptions options;
  options.progress = &progress;
  const Group world = Group::world(MPI_COMM_WORLD, options);
  const auto number = progress.read().number;
  std::byte value{};
  mpi::barrier(world);
  mpi::broadcast(world, &value, 1, 0);
  CHECK(world.number() == 0);
  CHECK(progress.read().number == number);
}
