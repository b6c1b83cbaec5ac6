// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/SimdAvx512.hpp"
#include "kernels/detail/host_ops.inl.hpp"

namespace taper::detail {

extern const HostOps kAvx512Ops;
const HostOps kAvx512Ops = make_host_ops<Avx512>();

}  // namespace taper::detail
