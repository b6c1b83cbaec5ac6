// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.hpp"

#include "base/Bf16.hpp"
#include "base/Error.hpp"
#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/Launch.hpp"
#include "kernels/detail/attention_args.hpp"

namespace taper {
namespace {

constexpr int kTokensPerTask = 32;

}  // namespace

namespace {

float as_stored(float value, float /*type*/) {
  return value;
}
bf16 as_stored(float value, bf16 /*type*/) {
  return to_bf16(value);
}

template <class T, class E>
void write_pages_of(const E& exec, const LayerPages& pages, MatrixView<const float, E> kv,
                    Segments<E> segments, const AttentionShape& shape) {
  const int n = static_cast<int>(segments.size()) * shape.kv_heads;
  const AttentionSegment* list = segments.data();
  const float* source = kv.data();
  detail::for_each_uneven("taper::write_pages", exec, n, [=](const int i) {
    const AttentionSegment& segment = list[i / shape.kv_heads];
    const int head = i % shape.kv_heads;
    for (int t = 0; t < segment.count; ++t) {
      const int position = segment.start + t, slot = position % kPage;
      T* page = reinterpret_cast<T*>(detail::page_of(pages, segment, head, position));
      const float* k =
          source +
          (static_cast<std::int64_t>(segment.row + t) * shape.kv_heads + head) * 2 * shape.head_pad;
      for (int d = 0; d < pages.head_dim; ++d) page[d * kPage + slot] = as_stored(k[d], T());
      T* v = page + detail::values_begin<T>(pages) + slot * pages.v_stride;
      for (int d = 0; d < pages.v_stride; ++d) v[d] = as_stored(k[shape.head_pad + d], T());
    }
  });
}

}  // namespace

template <class E>
void write_pages(const E& exec, const LayerPages& pages, MatrixView<const float, E> kv,
                 Segments<E> segments, const AttentionShape& shape) {
  pages.type == KvType::kBf16 ? write_pages_of<bf16>(exec, pages, kv, segments, shape)
                              : write_pages_of<float>(exec, pages, kv, segments, shape);
}

template <class E>
void attention(const E& exec, MatrixView<float, E> out, MatrixView<float, E> stats,
               MatrixView<const float, E> q, const LayerPages& pages, Segments<E> segments,
               const AttentionShape& shape) {
  const detail::AttentionArgs args = detail::attention_args(out, stats, q, pages, shape);
  const auto task = detail::host_ops().attention;
  const AttentionSegment* list = segments.data();
  int longest = 0;
  for (std::size_t s = 0; s < segments.size(); ++s)
    longest = list[s].count > longest ? list[s].count : longest;
  const int parts = (longest + kTokensPerTask - 1) / kTokensPerTask;
  const int n = static_cast<int>(segments.size()) * shape.kv_heads * parts;
  detail::for_each_uneven("taper::attention", exec, n, [=](const int i) {
    const AttentionSegment& segment = list[i / (shape.kv_heads * parts)];
    const int begin = i % parts * kTokensPerTask;
    const int end = begin + kTokensPerTask < segment.count ? begin + kTokensPerTask : segment.count;
    if (begin < end) task(args, segment, i / parts % shape.kv_heads, begin, end);
  });
}

template <class E>
void attention_backward(const E& exec, MatrixView<float, E> dq, MatrixView<float, E> dkv,
                        MatrixView<const float, E> dout, MatrixView<const float, E> out,
                        MatrixView<const float, E> stats, MatrixView<const float, E> q,
                        const LayerPages& pages, Segments<E> segments,
                        const AttentionShape& shape) {
  const detail::AttentionBackwardArgs args =
      detail::attention_backward_args(dq, dkv, dout, out, stats, q, pages, shape);
  const auto task = detail::host_ops().attention_backward;
  const AttentionSegment* list = segments.data();
  for (std::size_t s = 0; s < segments.size(); ++s) {
    TAPER_EXPECT(detail::gradient_row(list[s], 0) >= 0);
    TAPER_EXPECT(detail::gradient_row(list[s], list[s].start + list[s].count) <=
                 static_cast<std::int64_t>(dkv.extent(0)));
  }
  const int n = static_cast<int>(segments.size()) * shape.kv_heads;
  detail::for_each_uneven("taper::attention_backward", exec, n, [=](const int i) {
    task(args, list[i / shape.kv_heads], i % shape.kv_heads);
  });
}

template void write_pages<HostExec>(const HostExec&, const LayerPages&,
                                    MatrixView<const float, HostExec>, Segments<HostExec>,
                                    const AttentionShape&);
template void attention<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                  MatrixView<float, HostExec>, MatrixView<const float, HostExec>,
                                  const LayerPages&, Segments<HostExec>, const AttentionShape&);
template void attention_backward<HostExec>(const HostExec&, MatrixView<float, HostExec>,
                                           MatrixView<float, HostExec>,
                                           MatrixView<const float, HostExec>,
                                           MatrixView<const float, HostExec>,
                                           MatrixView<const float, HostExec>,
                                           MatrixView<const float, HostExec>, const LayerPages&,
                                           Segments<HostExec>, const AttentionShape&);

}  // namespace taper
