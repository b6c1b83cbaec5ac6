// SPDX-License-Identifier: Apache-2.0
#include "kernels/LaunchGraph.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "kernels/activation.hpp"
#include "kernels/copy.hpp"
#include "kernels/ops/Data.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("a graph repeats the launches that it has recorded, on the values of now") {
  const Exec exec;
  Floats a(1000, 1.0f), b(1000, 2.0f), sum(1000, 0.0f), copied(1000, 0.0f);
  const auto launches = [&] {
    add(exec, view(sum), const_view(a), const_view(b));
    copy(exec, view(copied), const_view(sum));
  };
  launches();
  exec.fence();
  copied.assign(copied.size(), 0.0f);
  const LaunchGraph graph(exec, launches);
  exec.fence();
  CHECK(copied == Floats(1000, 0.0f));  // recording runs nothing
  CHECK(graph.size() == 2);
  for (const float value : {5.0f, 7.0f}) {
    a.assign(a.size(), value);
    graph.launch(exec);
    exec.fence();
    CHECK(copied == Floats(1000, value + 2.0f));
  }
}

TEST_CASE("what is recorded must not wait") {
  const Exec exec;
  Floats x(100, 1.0f);
  fill(exec, view(x), 1.0f);
  exec.fence();
  std::vector<float> host(x.size());
  CHECK_THROWS_MATCHES(LaunchGraph(exec,
                                   [&] {
                                     fill(exec, view(x), 2.0f);
                                     exec.fence();
                                   }),
                       std::exception, MessageMatches(ContainsSubstring("StreamCapture")));
  fill(exec, view(x), 3.0f);  // the stream is usable again
  exec.fence();
  CHECK(x == Floats(100, 3.0f));
}
