// SPDX-License-Identifier: Apache-2.0
//
// The launchers of logits.hpp for CUDA; those of the host are in logits.cpp.
#include "base/Error.hpp"
#include "kernels/detail/logits_device.inl.hpp"

namespace taper {

template <>
void scale_logits<CudaExec>(const CudaExec& exec, MatrixView<float, CudaExec> logits,
                            VectorView<float, CudaExec> max, int valid, float temperature) {
  detail::device_scale_logits(exec, logits, max, valid, temperature);
}

template <>
void sum_masses<CudaExec>(const CudaExec& exec, VectorView<std::int64_t, CudaExec> mass,
                          MatrixView<const float, CudaExec> logits,
                          VectorView<const float, CudaExec> max, int valid) {
  detail::device_sum_masses(exec, mass, logits, max, valid);
}

template <>
void sum_weighted_logits<CudaExec>(const CudaExec& exec,
                                   VectorView<std::int64_t, CudaExec> weighted,
                                   MatrixView<const float, CudaExec> logits,
                                   VectorView<const float, CudaExec> max, int valid) {
  detail::device_sum_weighted_logits(exec, weighted, logits, max, valid);
}

template <>
void count_mass_levels<CudaExec>(const CudaExec& exec, MatrixView<MassLevel, CudaExec> levels,
                                 MatrixView<const float, CudaExec> logits,
                                 VectorView<const float, CudaExec> max, int valid) {
  detail::device_count_mass_levels(exec, levels, logits, max, valid);
}

template <>
void list_weighted_logits<CudaExec>(const CudaExec& exec, VectorView<WeightedLogit, CudaExec> list,
                                    VectorView<const std::int64_t, CudaExec> begin,
                                    VectorView<const std::int64_t, CudaExec> least,
                                    MatrixView<const float, CudaExec> logits,
                                    VectorView<const float, CudaExec> max, int valid) {
  detail::device_list_weighted_logits(exec, list, begin, least, logits, max, valid);
}

template <>
void find_masses<CudaExec>(const CudaExec& exec, VectorView<FoundLogit, CudaExec> found,
                           MatrixView<const float, CudaExec> logits,
                           VectorView<const float, CudaExec> max,
                           VectorView<const std::int64_t, CudaExec> target, int valid) {
  detail::device_find_masses(exec, found, logits, max, target, valid);
}

template <>
void find_max<CudaExec>(const CudaExec& exec, VectorView<std::int32_t, CudaExec> column,
                        MatrixView<const float, CudaExec> logits,
                        VectorView<const float, CudaExec> max, int valid) {
  detail::device_find_max(exec, column, logits, max, valid);
}

template <>
void pick_logits<CudaExec>(const CudaExec& exec, VectorView<float, CudaExec> y,
                           MatrixView<const float, CudaExec> logits,
                           VectorView<const LogitPlace, CudaExec> places) {
  TAPER_EXPECT(y.size() == places.size());
  detail::device_pick_logits(exec, y, logits, places);
}

template <>
void penalize_logits<CudaExec>(const CudaExec& exec, MatrixView<float, CudaExec> logits,
                               VectorView<const LogitPlace, CudaExec> places, float penalty) {
  detail::device_penalize_logits(exec, logits, places, penalty);
}

template <>
void logit_gradients<CudaExec>(const CudaExec& exec, MatrixView<float, CudaExec> logits,
                               VectorView<const LogitSlope, CudaExec> slopes,
                               VectorView<const std::int32_t, CudaExec> target, int valid,
                               float temperature) {
  detail::device_logit_gradients(exec, logits, slopes, target, valid, temperature);
}

}  // namespace taper
