// SPDX-License-Identifier: Apache-2.0
#include "model/DeviceBatch.hpp"

#include <algorithm>

#include "base/Error.hpp"

namespace taper {

namespace {

std::int64_t scratch_floats(const DeviceBatch::Shape& shape) {
  return shape.group > 0
             ? attention_scratch_floats<Exec>(shape.group, shape.head_dim, shape.pages * kPage)
             : 0;
}

}  // namespace

#if defined(TAPER_CUDA)

namespace {

constexpr std::int64_t floats_for(std::int64_t bytes) {
  return (bytes + 15) / 16 * 4;
}

// Takes arrays from a piece of memory, or counts what they need.
class Pieces {
 public:
  explicit Pieces(float* memory) : memory_(memory) {}
  template <class T>
  T* take(std::int64_t count) {
    auto* p = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + next_);
    next_ += floats_for(count * std::int64_t{sizeof(T)});
    return p;
  }
  std::int64_t floats() const { return next_; }

 private:
  float* memory_;
  std::int64_t next_ = 0;
};

BatchCopy take_copy(Pieces& pieces, const DeviceBatch::Shape& shape) {
  BatchCopy copy;
  copy.segments = pieces.take<AttentionSegment>(shape.rows + shape.segments);
  copy.ids = pieces.take<std::int32_t>(shape.rows);
  copy.positions = pieces.take<std::int32_t>(shape.rows);
  copy.blocks = pieces.take<std::int32_t>(std::int64_t{shape.segments} * shape.pages);
  copy.arrived = pieces.take<unsigned>(detail::AttentionScratch::kMostShared);
  return copy;
}

}  // namespace

std::int64_t DeviceBatch::floats(const Shape& shape) {
  Pieces pieces(nullptr);
  take_copy(pieces, shape);
  return pieces.floats() + scratch_floats(shape);
}

DeviceBatch::DeviceBatch(float* memory, const Shape& shape) : shape_(shape), memory_(memory) {}

TokenBatch DeviceBatch::bring(const Exec& exec, const TokenBatch& staged) const {
  Pieces pieces(memory_);
  BatchCopy to = take_copy(pieces, shape_);
  const int rows = staged.rows(), count = static_cast<int>(staged.segments.size());
  int segments = 0;
  for (int s = 0; s < count; ++s) {
    const AttentionSegment& segment = staged.segments(s);
    to.stride = std::max(to.stride, (segment.start + segment.count + kPage - 1) / kPage);
    if (segment.count > 0) segments = s + 1;
  }
  TAPER_INSIST(rows <= shape_.rows && segments <= shape_.segments && to.stride <= shape_.pages,
               "a pass has " << rows << " rows and " << segments << " segments of " << to.stride
                             << " pages, but there is memory for " << shape_.rows << ", "
                             << shape_.segments << " and " << shape_.pages);
  copy_batch(exec, to, staged.ids, staged.positions, staged.segments.host);
  const auto n = static_cast<std::size_t>(rows);
  TokenBatch batch{{to.ids, n},
                   {to.positions, n},
                   {staged.segments.host, to.segments},
                   staged.host_ids,
                   staged.shared};
  if (const std::int64_t floats = scratch_floats(shape_); floats > 0)
    batch.segments.scratch = {pieces.take<float>(floats), floats,
                              attention_scratch_chunks(shape_.pages * kPage), to.arrived};
  return batch;
}

#else

std::int64_t DeviceBatch::floats(const Shape& shape) {
  return scratch_floats(shape);
}

DeviceBatch::DeviceBatch(float* memory, const Shape& shape) : shape_(shape), memory_(memory) {}

TokenBatch DeviceBatch::bring(const Exec&, const TokenBatch& staged) const {
  TokenBatch batch = staged;
  batch.segments.scratch = {memory_, scratch_floats(shape_)};
  return batch;
}

#endif

}  // namespace taper
