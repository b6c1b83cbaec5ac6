// SPDX-License-Identifier: Apache-2.0
//
// The kernels that run on any execution space, on data of odd sizes: inputs go to the space,
// results come back. Ops names the functions under test.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/activation.hpp"
#include "kernels/detail/DeviceLaunch.hpp"
#include "kernels/norm.hpp"
#include "kernels/ops/Data.hpp"

namespace taper::test {

// A vector in the memory of E.
template <class E>
class Held {
 public:
  explicit Held(const Floats& values) : data_("taper::test", values.size()) {
    Kokkos::deep_copy(data_,
                      Kokkos::View<const float*, Kokkos::HostSpace>(values.data(), values.size()));
  }
  VectorView<float, E> vector() const {
    return VectorView<float, E>(data_.data(), data_.extent(0));
  }
  VectorView<const float, E> values() const {
    return VectorView<const float, E>(data_.data(), data_.extent(0));
  }
  MatrixView<float, E> matrix(int columns) const {
    return MatrixView<float, E>(data_.data(), data_.extent(0) / columns, columns);
  }
  MatrixView<const float, E> const_matrix(int columns) const { return matrix(columns); }
  Floats floats() const {
    Floats result(data_.extent(0));
    Kokkos::deep_copy(Kokkos::View<float*, Kokkos::HostSpace>(result.data(), result.size()), data_);
    return result;
  }

 private:
  Kokkos::View<float*, typename detail::KokkosSpace<E>::memory_space> data_;
};

using Results = std::vector<std::pair<std::string, Floats>>;

// Vectors of `width` at a distance of `stride`; padding keeps what it was.
template <class Ops, class E>
Results run_norm(const E& exec, int vectors, int width, int stride) {
  const NormShape shape{width, stride, 1e-5f};
  const std::int64_t n = std::int64_t{vectors} * stride;
  const Held<E> x(random_floats(n, 1)), gain(random_floats(width, 2)), y(random_floats(n, 3)),
      inv(Floats(vectors, 0.0f));
  const Held<E> dy(random_floats(n, 4)), dx(random_floats(n, 5)), added(random_floats(n, 6)),
      dgain(random_floats(width, 7));
  Ops::rmsnorm(exec, y.vector(), inv.vector(), x.values(), gain.values(), shape);
  Ops::rmsnorm_backward(exec, dx.vector(), dgain.vector(), dy.values(), x.values(), inv.values(),
                        gain.values(), shape, Accumulate::kNo);
  Ops::rmsnorm_backward(exec, added.vector(), dgain.vector(), dy.values(), x.values(), inv.values(),
                        gain.values(), shape, Accumulate::kYes);
  exec.fence();
  return {{"y", y.floats()},
          {"inv", inv.floats()},
          {"dx", dx.floats()},
          {"dx added", added.floats()},
          {"dgain", dgain.floats()}};
}

template <class Ops, class E>
Results run_activation(const E& exec, int rows, int columns) {
  const std::int64_t n = std::int64_t{rows} * columns;
  const Held<E> gate_up(random_floats(2 * n, 1, -30.0, 30.0)), y(Floats(n, 0.0f)),
      dy(random_floats(n, 2));
  const Held<E> d_gate_up(Floats(2 * n, 0.0f)), bias(random_floats(columns, 3)),
      sum(Floats(n, 0.0f));
  Ops::swiglu(exec, y.matrix(columns), gate_up.const_matrix(2 * columns));
  Ops::swiglu_backward(exec, d_gate_up.matrix(2 * columns), dy.const_matrix(columns),
                       gate_up.const_matrix(2 * columns));
  Ops::add(exec, sum.vector(), y.values(), dy.values());
  Ops::accumulate_bias(exec, bias.vector(), dy.const_matrix(columns));
  exec.fence();
  return {{"y", y.floats()},
          {"d_gate_up", d_gate_up.floats()},
          {"sum", sum.floats()},
          {"bias", bias.floats()}};
}

struct NormCase {
  int vectors, width, stride;
};
inline const std::vector<NormCase> kNormCases{
    {1, 1, 1}, {3, 16, 16}, {5, 33, 64}, {37, 100, 112}, {2, 1027, 1040}};
inline const std::vector<std::pair<int, int>> kActivationCases{{1, 64}, {3, 128}, {37, 192}};

// The launchers as the rest of the code calls them.
struct Launchers {
  template <class... Args>
  static void rmsnorm(Args&&... args) {
    taper::rmsnorm(std::forward<Args>(args)...);
  }
  template <class... Args>
  static void rmsnorm_backward(Args&&... args) {
    taper::rmsnorm_backward(std::forward<Args>(args)...);
  }
  template <class... Args>
  static void swiglu(Args&&... args) {
    taper::swiglu(std::forward<Args>(args)...);
  }
  template <class... Args>
  static void swiglu_backward(Args&&... args) {
    taper::swiglu_backward(std::forward<Args>(args)...);
  }
  template <class... Args>
  static void add(Args&&... args) {
    taper::add(std::forward<Args>(args)...);
  }
  template <class... Args>
  static void accumulate_bias(Args&&... args) {
    taper::accumulate_bias(std::forward<Args>(args)...);
  }
};

}  // namespace taper::test
