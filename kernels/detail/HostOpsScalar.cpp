// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/SimdScalar.hpp"
#include "kernels/detail/host_ops.inl.hpp"

namespace taper::detail {

extern const HostOps kScalarOps;
const HostOps kScalarOps = make_host_ops<Scalar>();

}  // namespace taper::detail
