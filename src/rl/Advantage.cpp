// SPDX-License-Identifier: Apache-2.0
#include "rl/Advantage.hpp"

#include <cmath>

namespace taper {

void set_group_advantages(std::vector<Sample>& samples, const AdvantageOptions& options) {
  for (std::size_t begin = 0; begin < samples.size();) {
    std::size_t end = begin;
    double sum = 0.0;
    for (; end < samples.size() && samples[end].ordinal == samples[begin].ordinal; ++end)
      sum += samples[end].score;
    const double n = static_cast<double>(end - begin);
    const double mean = n > 1 ? sum / n : 0.0;
    double squares = 0.0;
    for (std::size_t i = begin; i < end; ++i)
      squares += (samples[i].score - mean) * (samples[i].score - mean);
    const double deviation = n > 1 ? std::sqrt(squares / (n - 1.0)) : 1.0;
    const double scale = options.divide_by_std ? 1.0 / (deviation + options.eps) : 1.0;
    for (; begin < end; ++begin)
      samples[begin].advantage = static_cast<float>((samples[begin].score - mean) * scale);
  }
}

}  // namespace taper
