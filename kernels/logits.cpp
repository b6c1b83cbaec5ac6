// SPDX-License-Identifier: Apache-2.0
#include "kernels/logits.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/Error.hpp"
#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/Launch.hpp"

namespace taper {

template <class E>
void scale_logits(const E& exec, MatrixView<float, E> logits, VectorView<float, E> max, int valid,
                  float temperature) {
  const auto task = detail::host_ops().scale_and_max;
  detail::for_each("taper::scale_logits", exec, logits.extent_int(0), [=](const int r) {
    max(r) = task(&logits(r, 0), valid, temperature);
    for (int c = valid; c < logits.extent_int(1); ++c)
      logits(r, c) = -std::numeric_limits<float>::infinity();
  });
}

template <class E>
void sum_masses(const E& exec, VectorView<std::int64_t, E> mass, MatrixView<const float, E> logits,
                VectorView<const float, E> max, int valid) {
  const auto task = detail::host_ops().mass;
  detail::for_each("taper::sum_masses", exec, logits.extent_int(0),
                   [=](const int r) { mass(r) = task(&logits(r, 0), valid, max(r)); });
}

template <class E>
void sum_weighted_logits(const E& exec, VectorView<std::int64_t, E> weighted,
                         MatrixView<const float, E> logits, VectorView<const float, E> max,
                         int valid) {
  const auto task = detail::host_ops().weighted_logit;
  detail::for_each("taper::sum_weighted_logits", exec, logits.extent_int(0),
                   [=](const int r) { weighted(r) = task(&logits(r, 0), valid, max(r)); });
}

template <class E>
void count_mass_levels(const E& exec, MatrixView<MassLevel, E> levels,
                       MatrixView<const float, E> logits, VectorView<const float, E> max,
                       int valid) {
  const auto task = detail::host_ops().masses;
  detail::for_each("taper::count_mass_levels", exec, logits.extent_int(0), [=](const int r) {
    constexpr int kAtOnce = 512;
    std::array<std::int64_t, kAtOnce> masses;
    std::array<MassLevel, kMassLevels + 1> counted{};  // the last one: of ids without mass
    for (int begin = 0; begin < valid; begin += kAtOnce) {
      const int n = std::min(kAtOnce, valid - begin);
      task(masses.data(), &logits(r, begin), n, max(r));
      for (int i = 0; i < n; ++i) {
        const auto mass = static_cast<std::uint64_t>(masses[i]);
        counted[kMassLevels - std::bit_width(mass)] += {1, masses[i]};
      }
    }
    std::copy_n(counted.begin(), kMassLevels, &levels(r, 0));
  });
}

template <class E>
void list_weighted_logits(const E& exec, VectorView<WeightedLogit, E> list,
                          VectorView<const std::int64_t, E> begin,
                          VectorView<const std::int64_t, E> least,
                          MatrixView<const float, E> logits, VectorView<const float, E> max,
                          int valid) {
  const auto task = detail::host_ops().masses;
  detail::for_each("taper::list_weighted_logits", exec, logits.extent_int(0), [=](const int r) {
    // Smaller logits have not half of that mass: few masses are computed.
    const auto smallest =
        static_cast<float>(max(r) + std::log(static_cast<double>(least(r)) * 0x1p-41) - 0.01);
    std::int64_t place = begin(r);
    for (int c = 0; c < valid; ++c) {
      if (logits(r, c) < smallest) continue;
      std::int64_t mass = 0;
      task(&mass, &logits(r, c), 1, max(r));
      if (mass >= least(r)) list(place++) = {c, logits(r, c), mass};
    }
  });
}

template <class E>
void find_masses(const E& exec, VectorView<FoundLogit, E> found, MatrixView<const float, E> logits,
                 VectorView<const float, E> max, VectorView<const std::int64_t, E> target,
                 int valid) {
  const auto task = detail::host_ops().find_mass;
  detail::for_each("taper::find_masses", exec, logits.extent_int(0), [=](const int r) {
    found(r) = {};
    if (target(r) < 0) return;
    const int column = task(&logits(r, 0), valid, max(r), target(r));
    if (column < valid) found(r) = {column, logits(r, column)};
  });
}

template <class E>
void find_max(const E& exec, VectorView<std::int32_t, E> column, MatrixView<const float, E> logits,
              VectorView<const float, E> max, int valid) {
  detail::for_each("taper::find_max", exec, logits.extent_int(0), [=](const int r) {
    int c = 0;
    while (c < valid && logits(r, c) != max(r)) ++c;
    column(r) = c < valid ? c : -1;
  });
}

template <class E>
void pick_logits(const E& exec, VectorView<float, E> y, MatrixView<const float, E> logits,
                 VectorView<const LogitPlace, E> places) {
  TAPER_EXPECT(y.size() == places.size());
  detail::for_each("taper::pick_logits", exec, static_cast<int>(places.size()), [=](const int i) {
    const LogitPlace at = places(i);
    y(i) = at.column >= 0 ? logits(at.row, at.column) : -std::numeric_limits<float>::infinity();
  });
}

template <class E>
void penalize_logits(const E& exec, MatrixView<float, E> logits,
                     VectorView<const LogitPlace, E> places, float penalty) {
  detail::for_each("taper::penalize_logits", exec, static_cast<int>(places.size()),
                   [=](const int i) {
                     float& logit = logits(places(i).row, places(i).column);
                     logit = logit < 0.0f ? logit * penalty : logit / penalty;
                   });
}

template <class E>
void logit_gradients(const E& exec, MatrixView<float, E> logits,
                     VectorView<const LogitSlope, E> slopes,
                     VectorView<const std::int32_t, E> target, int valid, float temperature) {
  const auto task = detail::host_ops().logit_gradient;
  const float inverse = 1.0f / temperature;
  detail::for_each("taper::logit_gradients", exec, logits.extent_int(0), [=](const int r) {
    const LogitSlope& s = slopes(r);
    task(&logits(r, 0), valid, s.lse, s.entropy, s.by_log_prob, s.by_entropy, inverse);
    for (int c = valid; c < logits.extent_int(1); ++c) logits(r, c) = 0.0f;
    if (target(r) >= 0) logits(r, target(r)) += s.by_log_prob * inverse;
  });
}

float log_sum_exp(float max, std::int64_t total_mass) {
  return static_cast<float>(max + std::log(static_cast<double>(total_mass) * 0x1p-40));
}

float log_prob(float logit, float max, std::int64_t total_mass) {
  return static_cast<float>((static_cast<double>(logit) - max) -
                            std::log(static_cast<double>(total_mass) * 0x1p-40));
}

template void scale_logits<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                     VectorView<float, HostExec>, int, float);
template void sum_masses<HostExec>(const HostExec&, VectorView<std::int64_t, HostExec>,
                                   MatrixView<const float, HostExec>,
                                   VectorView<const float, HostExec>, int);
template void sum_weighted_logits<HostExec>(const HostExec&, VectorView<std::int64_t, HostExec>,
                                            MatrixView<const float, HostExec>,
                                            VectorView<const float, HostExec>, int);
template void count_mass_levels<HostExec>(const HostExec&, MatrixView<MassLevel, HostExec>,
                                          MatrixView<const float, HostExec>,
                                          VectorView<const float, HostExec>, int);
template void list_weighted_logits<HostExec>(const HostExec&, VectorView<WeightedLogit, HostExec>,
                                             VectorView<const std::int64_t, HostExec>,
                                             VectorView<const std::int64_t, HostExec>,
                                             MatrixView<const float, HostExec>,
                                             VectorView<const float, HostExec>, int);
template void find_masses<HostExec>(const HostExec&, VectorView<FoundLogit, HostExec>,
                                    MatrixView<const float, HostExec>,
                                    VectorView<const float, HostExec>,
                                    VectorView<const std::int64_t, HostExec>, int);
template void find_max<HostExec>(const HostExec&, VectorView<std::int32_t, HostExec>,
                                 MatrixView<const float, HostExec>,
                                 VectorView<const float, HostExec>, int);
template void pick_logits<HostExec>(const HostExec&, VectorView<float, HostExec>,
                                    MatrixView<const float, HostExec>,
                                    VectorView<const LogitPlace, HostExec>);
template void penalize_logits<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                        VectorView<const LogitPlace, HostExec>, float);
template void logit_gradients<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                        VectorView<const LogitSlope, HostExec>,
                                        VectorView<const std::int32_t, HostExec>, int, float);

}  // namespace taper
