// SPDX-License-Identifier: Apache-2.0
#include "model/DeviceCollectives.hpp"

#include <vector>

#include "comm/Collectives.hpp"
#include "kernels/copy.hpp"

namespace taper {
namespace {

// f(values on the host); what it leaves there is in `data` afterwards.
template <class F>
void through_host(const Exec& exec, FloatVector data, const F& f) {
  if constexpr (std::is_same_v<Exec, HostExec>) {
    f(std::span<float>(data.data(), data.size()));
  } else {
    std::vector<float> values(data.size());
    copy_to_host(exec, values, ConstFloatVector(data));
    f(std::span<float>(values));
    copy_from_host(exec, data, values);
  }
}

}  // namespace

void all_reduce_max(const Exec& exec, const Group& group, FloatVector data) {
  if (group.is_null()) return;
  through_host(exec, data, [&](std::span<float> values) { all_reduce_max(group, values); });
}

void all_reduce_ordered_sum(const Exec& exec, const Group& group, FloatVector data) {
  if (group.is_null()) return;
  through_host(exec, data, [&](std::span<float> values) { all_reduce_ordered_sum(group, values); });
}

void reduce_scatter_ordered_sum(const Exec& exec, const Group& group, FloatVector out,
                                ConstFloatVector in, std::span<const std::int64_t> offsets) {
  if constexpr (std::is_same_v<Exec, HostExec>) {
    reduce_scatter_ordered_sum(group, std::span<float>(out.data(), out.size()),
                               std::span<const float>(in.data(), in.size()), offsets);
  } else {
    std::vector<float> all(in.size()), mine(out.size());
    copy_to_host(exec, all, in);
    reduce_scatter_ordered_sum(group, mine, all, offsets);
    copy_from_host(exec, out, mine);
  }
}

void tree_sum(const Exec& exec, const TreeReducer& reducer, const Group& group, FloatMatrix out,
              const float* partials, float* workspace) {
  const int rows = out.extent_int(0), cols = out.extent_int(1);
  const std::size_t floats = out.size();
  if (group.is_null()) {  // one shard of all leaves is one node: its only partial is the sum
    if (out.data() != partials)
      copy(exec, FloatVector(out.data(), floats), ConstFloatVector(partials, floats));
  } else if constexpr (std::is_same_v<Exec, HostExec>) {
    reducer.sum(group, out.data(), partials, rows, cols, workspace);
  } else {
    std::vector<float> mine(floats * static_cast<std::size_t>(reducer.partials(group.rank())));
    std::vector<float> sum(floats), room(reducer.workspace_floats(rows, cols));
    copy_to_host(exec, mine, ConstFloatVector(partials, mine.size()));
    reducer.sum(group, sum.data(), mine.data(), rows, cols, room.data());
    copy_from_host(exec, FloatVector(out.data(), floats), sum);
  }
}

}  // namespace taper
