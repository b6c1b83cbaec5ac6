// SPDX-License-Identifier: Apache-2.0
//
// The launchers of attention.hpp for CUDA; those of the host are in attention.cpp.
#include "base/Error.hpp"
#include "kernels/detail/TensorAttention.hpp"
#include "kernels/detail/attention_args.hpp"
#include "kernels/detail/attention_device.inl.hpp"

namespace taper {
using detail::attention_grid;

template <>
void write_pages<CudaExec>(const CudaExec& exec, const LayerPages& pages,
                           MatrixView<const float, CudaExec> kv,
                           VectorView<const AttentionSegment, CudaExec> segments,
                           const AttentionShape& shape) {
  detail::device_write_pages(exec, pages, kv.data(), attention_grid(segments, shape.kv_heads),
                             shape.head_pad);
}

template <>
void attention<CudaExec>(const CudaExec& exec, MatrixView<float, CudaExec> out,
                         MatrixView<float, CudaExec> stats, MatrixView<const float, CudaExec> q,
                         const LayerPages& pages,
                         VectorView<const AttentionSegment, CudaExec> segments,
                         const AttentionShape& shape) {
  const detail::AttentionArgs args = detail::attention_args(out, stats, q, pages, shape);
  const detail::AttentionGrid grid = attention_grid(segments, shape.heads);
  if (pages.type == KvType::kBf16)
    detail::tensor_attention(exec, args, grid);
  else
    detail::device_attention(exec, args, grid);
}

template <>
void attention_backward<CudaExec>(const CudaExec& exec, MatrixView<float, CudaExec> dq,
                                  MatrixView<float, CudaExec> dkv,
                                  MatrixView<const float, CudaExec> dout,
                                  MatrixView<const float, CudaExec> out,
                                  MatrixView<const float, CudaExec> stats,
                                  MatrixView<const float, CudaExec> q, const LayerPages& pages,
                                  VectorView<const AttentionSegment, CudaExec> segments,
                                  const AttentionShape& shape) {
  const detail::AttentionBackwardArgs args =
      detail::attention_backward_args(dq, dkv, dout, out, stats, q, pages, shape);
  for (std::size_t s = 0; s < segments.size(); ++s) TAPER_EXPECT(segments(s).start == 0);
  const detail::AttentionGrid grid = attention_grid(segments, shape.heads);
  if (pages.type == KvType::kBf16) {
    detail::tensor_attention_backward(exec, args, grid);
    return;
  }
  detail::device_attention_dq(exec, args, grid);
  detail::device_attention_dkv(exec, args, grid);
}

}  // namespace taper
