// SPDX-License-Identifier: Apache-2.0
#include "device/Devices.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/Error.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

const Device kHopper{"H", "0000:01:00.0", 90}, kOther{"H", "0000:02:00.0", 90};

}  // namespace

TEST_CASE("a rank uses the device of its number on the host") {
  const VisibleDevices two{{kHopper, kOther}, ""};
  CHECK(choose_device(two, 0, 90) == 0);
  CHECK(choose_device(two, 1, 90) == 1);
  CHECK(choose_device(two, 2, 90) == 0);             // shared
  CHECK(choose_device({{kOther}, ""}, 3, 80) == 0);  // the batch system has chosen
}

TEST_CASE("a device that cannot be used is refused with what to do") {
  CHECK_THROWS_MATCHES(choose_device({{}, "no CUDA-capable device"}, 0, 90), Error,
                       MessageMatches(ContainsSubstring("sees none (no CUDA-capable device; ") &&
                                      ContainsSubstring("--gpus-per-node")));
  Device old{"A", "0000:03:00.0", 80};
  CHECK_THROWS_MATCHES(
      choose_device({{old}, ""}, 0, 90), Error,
      MessageMatches(ContainsSubstring("A (0000:03:00.0) has compute capability "
                                       "8.0 (this program was built for 9.0 alone)")));
  const Device later{"B", "0000:04:00.0", 100};
  CHECK_THROWS_MATCHES(choose_device({{later}, ""}, 0, 89), Error,
                       MessageMatches(ContainsSubstring("10.0, and it is not known how its tensor "
                                                        "cores add")));
  CHECK(choose_device({{kHopper}, ""}, 0, 89) == 0);
  CHECK_THROWS_MATCHES(
      choose_device({{later}, ""}, 0, 90), Error,
      MessageMatches(ContainsSubstring("10.0 (this program was built for 9.0 alone)")));
  Device closed = kHopper;
  closed.prohibited = true;
  CHECK_THROWS_MATCHES(choose_device({{closed}, ""}, 0, 90), Error,
                       MessageMatches(ContainsSubstring("'prohibited'")));
}

namespace {

DeviceUse use(const Device& device, std::vector<std::string> seen, const std::string& host = "n1") {
  return {host, device, std::move(seen)};
}

}  // namespace

TEST_CASE("ranks of a job use devices together if they can") {
  const std::vector<std::string> both{kHopper.bus, kOther.bus};
  CHECK(problem_of({}).empty());
  CHECK(problem_of({use(kHopper, both), use(kOther, both)}).empty());
  CHECK(problem_of({use(kHopper, both), use(kOther, both), use(kHopper, both)}).empty());
  CHECK(problem_of({use(kHopper, {kHopper.bus}), use(kOther, {kOther.bus})}).empty());
  CHECK(problem_of({use(kHopper, {kHopper.bus}), use(kOther, both)}).empty());
  CHECK(problem_of({use(kHopper, {kHopper.bus}), use(kHopper, {kHopper.bus}, "n2")}).empty());

  CHECK_THAT(problem_of({use(kOther, {kOther.bus}), use(kOther, both)}),
             ContainsSubstring("ranks 0 and 1 would both use H (0000:02:00.0) of n1, because they "
                               "see different GPUs (0000:02:00.0; and 0000:01:00.0, "
                               "0000:02:00.0)"));
  Device single = kHopper;
  single.exclusive = true;
  CHECK(problem_of({use(single, both), use(kOther, both)}).empty());
  CHECK_THAT(problem_of({use(single, both), use(kOther, both), use(single, both)}),
             ContainsSubstring("ranks 0 and 2 would both use") &&
                 ContainsSubstring("'exclusive'") && ContainsSubstring("nvidia-smi -c 0"));
  const Device older{"A", "0000:03:00.0", 80};
  CHECK_THAT(problem_of({use(kHopper, both), use(kOther, both), use(older, {older.bus}, "n2")}),
             ContainsSubstring("of compute capability 9.0, rank 2 A (0000:03:00.0) of 8.0"));
}
