// SPDX-License-Identifier: Apache-2.0
//
// Writes tokens and log-probs of some generations, and loss and gradient of a training pass, to the
// file that TAPER_GENERATIONS names: for comparisons between processes (CompareThreads.cmake).
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "engine/EngineRun.hpp"

using namespace taper;
using namespace taper::test;

namespace {

template <class T>
void write(std::ofstream& out, const std::vector<T>& values) {
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(T)));
}

}  // namespace

TEST_CASE("generations and gradients to a file") {
  const char* const file = std::getenv("TAPER_GENERATIONS");
  REQUIRE(file != nullptr);
  std::cout << "threads: " << HostExec().concurrency() << std::endl;
  std::ofstream out(file, std::ios::binary);
  const Group self = Group::self();
  for (const auto& name : std::vector<std::string>{"llama_b", "llama_c", "qwen2_a", "qwen3_a"}) {
    for (const auto type : {WeightType::kF32, WeightType::kBf16}) {
      GoldenModel m(name, self, type);
      for (const int top_k : {0, 30}) {
        SamplingOptions o;
        o.temperature = 0.8f;
        o.top_k = top_k;
        const Generation g = generate(m, roomy(m), o, some_stops(), mixed_requests(m, 13, 20));
        for (const auto& [key, c] : g.responses) {
          write(out, c.response);
          write(out, c.log_probs);
          write(out, c.kept_mass);
        }
      }
      const double loss = m.train(m.sequences());
      const FloatVector gradient = m.gradient_values();
      write(out, std::vector<double>{loss});
      write(out, std::vector<float>(gradient.data(), gradient.data() + gradient.size()));
    }
  }
  out.flush();
  CHECK(out.good());
}
