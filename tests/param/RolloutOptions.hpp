// SPDX-License-Identifier: Apache-2.0
//
// Options as a module would have them, with one parameter of each kind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "param/Schema.hpp"

namespace taper::test {

enum class Mode { kStatic, kAdvise, kAdaptive };

struct RolloutOptions {
  double temperature = 1;
  double top_p = 1;
  int samples = 8;
  std::uint64_t seed = 7;
  int top_k = 40;
  bool greedy = false;
  Mode mode = Mode::kStatic;
  std::string name = "first";
  std::vector<int> degrees = {1, 2};
  std::vector<float> rates;
  std::vector<std::string> stop = {"</s>"};
  int pages = 64;  // of the nested section

  std::vector<std::string> problems() const {
    if (greedy && temperature > 0) return {"Greedy is on at Temperature > 0 (greedy needs 0)"};
    return {};
  }
};

struct ModelOptions {
  std::string directory;
};

inline void describe(param::Section& s, RolloutOptions& o) {
  auto r = s.section("Rollout", "How responses are generated");
  r.number("Temperature", o.temperature, "Softmax temperature; 0 is greedy").at_least(0);
  r.number("Top P", o.top_p, "Mass kept of the distribution").above(0).at_most(1);
  r.integer("Samples", o.samples, "Responses per prompt").between(1, 1024);
  r.integer("Seed", o.seed, "Seed of all random numbers");
  r.integer("Top K", o.top_k, "Tokens kept of the distribution; 0 is all").at_least(0);
  r.flag("Greedy", o.greedy, "Takes the likeliest token");
  r.choice("Mode", o.mode, "Who chooses the layout",
           {{"static", Mode::kStatic}, {"advise", Mode::kAdvise}, {"adaptive", Mode::kAdaptive}});
  r.text("Name", o.name, "What reports call the run");
  r.list("Degrees", o.degrees, "Degrees of tensor parallelism").at_least(1).not_empty();
  r.list("Rates", o.rates, "Rates per stage").below(1);
  r.list("Stop", o.stop, "Texts that end a response");
  auto cache = r.section("Cache", "Memory of keys and values");
  cache.integer("Pages", o.pages, "Pages per rank").at_least(1);
  r.check([&o] { return o.problems(); });
}

inline void describe(param::Section& s, ModelOptions& o) {
  auto m = s.section("Model", "What is trained");
  m.text("Directory", o.directory, "Hugging Face directory of the model").not_empty();
}

}  // namespace taper::test
