// SPDX-License-Identifier: Apache-2.0
#include "inspect/Hdf5Tree.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "io/Hdf5File.hpp"
#include "results/RunFile.hpp"
#include "support/Messages.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

TEST_CASE("groups, shapes, units, descriptions, attributes and the first values are shown") {
  const Scratch scratch;
  {
    Hdf5File file = Hdf5File::create(scratch / "a.h5");
    file.set_attribute("/", "format", "mine");
    file.set_attribute("/", "share", 0.5);
    file.write<double>("/group/times", {1, 2.5, 3, 4, 5, 6, 7, 8},
                       {.units = "s", .description = "what they took"});
    file.set_attribute("/group/times", "rank", 3);
    file.write<float>("/pair", std::vector<float>{0.25f, -1, 2, 3}, {2, 2});
    file.write_string("/text", "two\nlines");
  }
  CHECK(hdf5_tree(scratch / "a.h5") ==
        "  @format: \"mine\"\n"
        "  @share: 0.5\n"
        "  group/\n"
        "    times (8) [s]: 1, 2.5, 3, 4, 5, 6, ...\n"
        "        what they took\n"
        "        @rank: 3\n"
        "  pair (2, 2): 0.25, -1, 2, 3\n"
        "  text (): \"two...\"\n");
}

TEST_CASE("integers keep all their digits, and texts are quoted") {
  const Scratch scratch;
  const std::vector<std::int64_t> smallest{std::numeric_limits<std::int64_t>::min(), 7};
  const std::vector<std::uint64_t> largest{std::numeric_limits<std::uint64_t>::max()};
  const std::vector<std::string> names{"a \"b\"", "c"};
  {
    Hdf5File file = Hdf5File::create(scratch / "a.h5");
    file.write("/smallest", smallest);
    file.write("/largest", largest);
    file.write_strings("/names", names);
  }
  CHECK(hdf5_tree(scratch / "a.h5") ==
        "  largest (1): 18446744073709551615\n"
        "  names (2): \"a \\\"b\\\"\", \"c\"\n"
        "  smallest (2): -9223372036854775808, 7\n");
}

TEST_CASE("damage behind the first values is found, and file and dataset are named") {
  const Scratch scratch;
  const fs::path path = scratch / "run.h5";
  {
    RunFile run(path);
    for (int i = 1; i <= 400; ++i)
      run.add_metrics(i, {{"critic/score/mean", 0.25 * i}, {"actor/loss", 1.0 / i}});
    run.save();
  }
  CHECK_THAT(hdf5_tree(path), ContainsSubstring("metrics/\n") && ContainsSubstring("mean (400)") &&
                                  ContainsSubstring(": 0.25, 0.5, 0.75, 1, 1.25, 1.5, ...\n"));

  const std::string bytes = slurp(path);
  const auto error = [&] { return message_of([&] { hdf5_tree(path); }); };
  std::string flipped = bytes;
  const double value = 0.25 * 300;  // stands in the middle of a checksummed array
  const auto at = bytes.find(std::string(reinterpret_cast<const char*>(&value), sizeof value));
  REQUIRE(at != std::string::npos);
  flipped[at] ^= 1;
  spill(path, flipped);
  CHECK_THAT(error(), ContainsSubstring("run.h5 is damaged") &&
                          ContainsSubstring("/metrics/critic/score/mean"));
  spill(path, bytes.substr(0, bytes.size() / 2));
  CHECK_THAT(error(), ContainsSubstring("run.h5 is damaged"));
  CHECK_THAT(message_of([&] { hdf5_tree(scratch / "none.h5"); }), ContainsSubstring("none.h5"));
}
