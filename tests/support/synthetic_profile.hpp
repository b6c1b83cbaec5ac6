// SPDX-License-Identifier: Apache-2.0
//
// Profiles of described machines, for tests of what is computed from profiles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/LatencyProfile.hpp"

namespace taper::test {

// A model on ranks of one core each: weights are streamed once per step, products cost their
// floating-point operations, the KV cache is streamed, and each layer of a group exchanges twice.
struct Machine {
  double bytes_per_ns = 11;   // of one rank
  double flops_per_ns = 110;  // of one rank
  double exchange_ns = 2600;  // latency of one exchange of a group of two
  double network_bytes_per_ns = 4;
  std::int64_t parameters = 3'500'000;
  int layers = 4;
  int hidden = 256;
  int kv_bytes_per_position = 4 * 2 * 128 * 4;
};

inline Machine small_model_shared() {
  return {};
}
inline Machine small_model_tcp() {
  Machine m;
  m.exchange_ns = 20000;
  m.network_bytes_per_ns = 1;
  return m;
}
inline Machine smollm2_shared() {
  Machine m;
  m.parameters = 134'500'000;
  m.layers = 30;
  m.hidden = 576;
  m.kv_bytes_per_position = 30 * 2 * 192 * 4;
  return m;
}
inline Machine smollm2_tcp() {
  Machine m = smollm2_shared();
  m.exchange_ns = 20000;
  m.network_bytes_per_ns = 1;
  return m;
}

// Nanoseconds of a step of `rows` new tokens over `context` summed positions.
inline double step_time(const Machine& m, int tp, double rows, double context) {
  const double stream = 2.0 * static_cast<double>(m.parameters) / tp / m.bytes_per_ns;
  const double compute = 2.0 * static_cast<double>(m.parameters) * rows / tp / m.flops_per_ns;
  const double kv = m.kv_bytes_per_position * context / tp / m.bytes_per_ns;
  double levels = 0;
  for (int t = 1; t < tp; t *= 2) ++levels;
  const double exchange =
      m.layers * 2 * levels * (m.exchange_ns + rows * m.hidden * 4 / m.network_bytes_per_ns);
  return 20000 + (stream > compute ? stream : compute) +
         0.3 * (stream > compute ? compute : stream) + kv + exchange;
}

inline LatencyProfile synthetic_profile(const Machine& m, const std::vector<int>& degrees,
                                        int max_sequences = 128, int max_context = 4096) {
  LatencyProfile p;
  p.identity.model = {{"layers", std::to_string(m.layers)}, {"hidden", std::to_string(m.hidden)}};
  p.identity.machine = {{"name", "described"}};
  p.ranks = degrees.back();
  p.ranks_per_node = degrees.back();
  p.kv_bytes_per_position = m.kv_bytes_per_position;
  for (const int tp : degrees) {
    for (int b = 1; b <= max_sequences; b *= 2)
      for (int c = 32; c <= max_context; c *= 4)
        p.steps.push_back({tp, PairClass::kSameNode, b, b, std::int64_t{b} * c,
                           static_cast<std::int64_t>(step_time(m, tp, b, double(b) * c)), 1000, 9});
    for (const int n : {64, 256})
      p.steps.push_back({tp, PairClass::kSameNode, n, 1, n,
                         static_cast<std::int64_t>(step_time(m, tp, n, n / 2.0)), 1000, 9});
    p.rendezvous.push_back({tp, tp == 1 ? 0 : static_cast<std::int64_t>(10 * m.exchange_ns)});
  }
  p.moves = {{PairClass::kSameNode, static_cast<std::int64_t>(4 * m.exchange_ns),
              static_cast<std::int64_t>(1000 / m.network_bytes_per_ns)}};
  return p;
}

}  // namespace taper::test
