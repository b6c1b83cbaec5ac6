// SPDX-License-Identifier: Apache-2.0
//
// Files written by all ranks of MPI_COMM_WORLD, whatever their number.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>

#include "base/Error.hpp"
#include "io/Hdf5File.hpp"
#include "io/MpiCall.hpp"
#include "support/Scratch.hpp"

using taper::Checksum;
using taper::DatasetOptions;
using taper::Dims;
using taper::Hdf5File;
using taper::test::Scratch;

namespace {

int rank() {
  return taper::detail::comm_rank(MPI_COMM_WORLD);
}
int ranks() {
  return taper::detail::comm_size(MPI_COMM_WORLD);
}

// Rank r brings lengths[r % size] elements; some bring none.
struct Parts {
  std::int64_t offset = 0, mine = 0, total = 0;
};

Parts uneven_parts(const std::vector<std::int64_t>& lengths) {
  Parts parts;
  for (int r = 0; r < ranks(); ++r) {
    const auto length = lengths[static_cast<std::size_t>(r) % lengths.size()];
    if (r < rank()) parts.offset += length;
    if (r == rank()) parts.mine = length;
    parts.total += length;
  }
  return parts;
}

}  // namespace

TEST_CASE("parts of all ranks make one array, with every filter") {
  const auto options = GENERATE(DatasetOptions{.checksum = Checksum::kNone}, DatasetOptions{},
                                DatasetOptions{.compression = 4, .chunk = {1000}});
  // Chunks shared by ranks and ranks with nothing; all of it on one rank; nothing at all.
  const auto lengths =
      GENERATE(std::vector<std::int64_t>{70'000, 0, 12'345, 1},
               std::vector<std::int64_t>{3, 0, 0, 0}, std::vector<std::int64_t>{0});
  CAPTURE(options.compression, options.chunk.size(), lengths.front());
  const Scratch scratch;
  const auto parts = uneven_parts(lengths);
  DatasetOptions used = options;
  if (!used.chunk.empty() && parts.total < 1000) used.chunk = {};
  std::vector<std::int32_t> mine(static_cast<std::size_t>(parts.mine));
  std::iota(mine.begin(), mine.end(), static_cast<std::int32_t>(parts.offset));
  {
    auto file = Hdf5File::create_parallel(scratch / "a.h5", MPI_COMM_WORLD);
    file.write_slab<std::int32_t>("/g/x", {parts.total}, {parts.offset}, mine, {parts.mine}, used);
    file.close();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<std::int32_t> expected(static_cast<std::size_t>(parts.total));
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(Hdf5File::open_read(scratch / "a.h5").read<std::int32_t>("/g/x").values == expected);
}

TEST_CASE("parts of a matrix by columns, in several calls") {
  const Scratch scratch;
  const std::int64_t columns = 5 * ranks();
  {
    auto file = Hdf5File::create_parallel(scratch / "a.h5", MPI_COMM_WORLD);
    file.create_dataset<float>("m", {6, columns}, {.compression = 1});
    for (std::int64_t half = 0; half < 2; ++half) {
      const std::vector<float> mine(15, static_cast<float>(10 * half + rank()));
      file.write_part<float>("m", {3 * half, 5 * rank()}, mine, {3, 5});
    }
    file.close();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const auto file = Hdf5File::open_read(scratch / "a.h5");
  const auto theirs = (rank() + 1) % ranks();
  CHECK(file.read_slab<float>("m", {2, 5 * theirs}, {2, 1}) ==
        std::vector<float>{static_cast<float>(theirs), static_cast<float>(10 + theirs)});
}

TEST_CASE("what all ranks know is written once") {
  const Scratch scratch;
  const std::vector<std::string> names = {"a", "bcd"};
  {
    auto file = Hdf5File::create_parallel(scratch / "a.h5", MPI_COMM_WORLD);
    file.write("x", std::vector<double>(1000, 0.5),
               {.compression = 1, .units = "s", .description = "d"});
    file.write<int>("n", std::vector{7}, Dims{});
    file.write_string("text", "some text");
    file.write_strings("names", names);
    file.write("none", std::vector<double>{});
    file.create_group("group");
    file.set_attribute("/", "version", 1);
    file.set_attribute("group", "name", "value");
    for (int i = 0; i < 40; ++i)
      file.set_attribute("group", "text" + std::to_string(i), std::string(500, 'x'));
    file.close();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const auto file = Hdf5File::open_read(scratch / "a.h5");
  CHECK(file.read<double>("x").values == std::vector<double>(1000, 0.5));
  CHECK(file.read<int>("n").values == std::vector{7});
  CHECK(file.read_string("text") == "some text");
  CHECK(file.read_strings("names") == names);
  CHECK(file.read<double>("none").values.empty());
  CHECK(file.int_attribute("/", "version") == 1);
  CHECK(file.string_attribute("group", "name") == "value");
  for (int i = 0; i < 40; ++i)
    CHECK(file.string_attribute("group", "text" + std::to_string(i)).size() == 500);
}

TEST_CASE("a parallel file stays open while an exception passes") {
  // Closing is collective: done by the failing rank alone it would wait for the others for ever.
  const Scratch scratch;
  const auto open_files = [] { return H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_FILE); };
  const auto before = open_files();
  try {
    auto file = Hdf5File::create_parallel(scratch / "a.h5", MPI_COMM_WORLD);
    throw taper::Error(taper::ExitCode::kFailure, "out of here");
  } catch (const taper::Error&) {
    CHECK(open_files() == before + 1);
  }
  hid_t left = H5I_INVALID_HID;
  REQUIRE(H5Fget_obj_ids(H5F_OBJ_ALL, H5F_OBJ_FILE, 1, &left) == 1);
  CHECK(H5Fclose(left) >= 0);
  { auto file = Hdf5File::create_parallel(scratch / "b.h5", MPI_COMM_WORLD); }
  CHECK(open_files() == before);
}

TEST_CASE("a problem of one rank is thrown by all") {
  const std::string problem = rank() == ranks() - 1 ? "no luck" : "";
  try {
    taper::detail::throw_together(MPI_COMM_WORLD, problem);
    FAIL("nothing thrown");
  } catch (const taper::Error& error) {
    CHECK(std::string(error.what()) == "no luck (rank " + std::to_string(ranks() - 1) + ")");
  }
  CHECK_NOTHROW(taper::detail::throw_together(MPI_COMM_WORLD, ""));
}
