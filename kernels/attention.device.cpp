// SPDX-License-Identifier: Apache-2.0
//
// The launchers of attention.hpp for CUDA; those of the host are in attention.cpp.
#include "base/Error.hpp"
#include "kernels/detail/TensorAttention.hpp"
#include "kernels/detail/attention_args.hpp"
#include "kernels/detail/attention_device.inl.hpp"

namespace taper {
using detail::attention_grid;

void copy_batch(const CudaExec& exec, const BatchCopy& to,
                VectorView<const std::int32_t, CudaExec> ids,
                VectorView<const std::int32_t, CudaExec> positions,
                VectorView<const AttentionSegment, CudaExec> segments) {
  detail::device_for_teams(
      "taper::copy_batch", exec, static_cast<std::int64_t>(segments.size()), 64, 0,
      KOKKOS_LAMBDA(const detail::Team& team) {
        AttentionSegment segment = segments(team.league_rank());
        const int rows = segment.count > 0 ? segment.count : 1;
        if (team.league_rank() == 0)
          detail::team_for(team, detail::AttentionScratch::kMostShared,
                           [&](const int i) { to.arrived[i] = 0; });
        detail::team_for(team, rows, [&](const int i) {
          if (segment.row + i >= static_cast<int>(ids.size())) return;  // no tokens, at the end
          to.ids[segment.row + i] = ids(segment.row + i);
          to.positions[segment.row + i] = positions(segment.row + i);
        });
        std::int32_t* const blocks = to.blocks + std::int64_t{team.league_rank()} * to.stride;
        const int pages =
            segment.count > 0 ? (segment.start + segment.count + kPage - 1) / kPage : 0;
        detail::team_for(team, pages, [&](const int i) { blocks[i] = segment.blocks[i]; });
        segment.blocks = blocks;
        detail::once(team, [&] { to.segments[team.league_rank()] = segment; });
      });
}

template <>
void write_pages<CudaExec>(const CudaExec& exec, const LayerPages& pages,
                           MatrixView<const float, CudaExec> kv, Segments<CudaExec> segments,
                           const AttentionShape& shape) {
  detail::device_write_pages(exec, pages, kv.data(), attention_grid(segments, shape.kv_heads),
                             shape.head_pad);
}

template <>
void attention<CudaExec>(const CudaExec& exec, MatrixView<float, CudaExec> out,
                         MatrixView<float, CudaExec> stats, MatrixView<const float, CudaExec> q,
                         const LayerPages& pages, Segments<CudaExec> segments,
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
                                  Segments<CudaExec> segments, const AttentionShape& shape) {
  const detail::AttentionBackwardArgs args =
      detail::attention_backward_args(dq, dkv, dout, out, stats, q, pages, shape);
  const detail::AttentionGrid grid = attention_grid(segments, shape.heads);
  if (pages.type == KvType::kBf16) {
    detail::tensor_attention_backward(exec, args, grid);
    return;
  }
  detail::device_attention_dq(exec, args, grid);
  detail::device_attention_dkv(exec, args, grid);
}

}  // namespace taper
