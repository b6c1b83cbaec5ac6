// SPDX-License-Identifier: Apache-2.0
#include "kernels/detail/SimdAvx2.hpp"
#include "kernels/detail/host_ops.inl.hpp"

namespace taper::detail {

extern const HostOps kAvx2Ops;
const HostOps kAvx2Ops = make_host_ops<Avx2>();

}  // namespace taper::detail
