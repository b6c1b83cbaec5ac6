// SPDX-License-Identifier: Apache-2.0
#include "device/Devices.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

const Device kHopper{"H", "0000:01:00.0", 90}, kOther{"H", "0000:02:00.0", 90};

}  // namespace

TEST_CASE("a rank uses the device of its number on the host") {
  const VisibleDevices two{{kHopper, kOther}, ""};
  CHECK(choose_device(two, 0, 2, 90) == 0);
  CHECK(choose_device(two, 1, 2, 90) == 1);
  CHECK(choose_device(two, 2, 4, 90) == 0);             // shared
  CHECK(choose_device({{kOther}, ""}, 3, 4, 80) == 0);  // the batch system has chosen
}

TEST_CASE("a device that cannot be used is refused with what to do") {
  CHECK_THROWS_MATCHES(choose_device({{}, "no CUDA-capable device"}, 0, 1, 90), Error,
                       MessageMatches(ContainsSubstring("sees none (no CUDA-capable device; ") &&
                                      ContainsSubstring("--gpus-per-node")));
  Device old{"A", "0000:03:00.0", 80};
  CHECK_THROWS_MATCHES(
      choose_device({{old}, ""}, 0, 1, 90), Error,
      MessageMatches(ContainsSubstring("A (0000:03:00.0) has compute capability "
                                       "8.0 (this program was built for 9.0 alone)")));
  const Device later{"B", "0000:04:00.0", 100};
  CHECK_THROWS_MATCHES(choose_device({{later}, ""}, 0, 1, 89), Error,
                       MessageMatches(ContainsSubstring("10.0, and it is not known how its tensor "
                                                        "cores add")));
  CHECK(choose_device({{kHopper}, ""}, 0, 1, 89) == 0);
  CHECK_THROWS_MATCHES(
      choose_device({{later}, ""}, 0, 1, 90), Error,
      MessageMatches(ContainsSubstring("10.0 (this program was built for 9.0 alone)")));
  Device closed = kHopper;
  closed.prohibited = true;
  CHECK_THROWS_MATCHES(choose_device({{closed}, ""}, 0, 1, 90), Error,
                       MessageMatches(ContainsSubstring("'prohibited'")));
}

TEST_CASE("ranks do not share a device that takes one program") {
  Device first = kHopper, second = kOther;
  first.exclusive = second.exclusive = true;
  const VisibleDevices two{{first, second}, ""};
  CHECK(choose_device(two, 1, 2, 90) == 1);
  CHECK_THROWS_MATCHES(choose_device(two, 1, 3, 90), Error,
                       MessageMatches(ContainsSubstring("3 ranks share 2 GPUs")));
}
