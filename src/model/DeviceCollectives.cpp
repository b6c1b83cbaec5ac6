// SPDX-License-Identifier: Apache-2.0
#include "model/DeviceCollectives.hpp"

#include <algorithm>
#include <vector>

#include "comm/Collectives.hpp"
#include "kernels/copy.hpp"
#if defined(TAPER_CUDA)
#include "comm/nccl/Transport.hpp"
#include "kernels/tree_sum.hpp"
#endif

namespace taper {
namespace {

// f(out, in) with the values on the host; what it leaves there is in `out` afterwards.
template <class F>
void through_host(const Exec& exec, FloatVector out, ConstFloatVector in, const F& f) {
  if constexpr (std::is_same_v<Exec, HostExec>) {
    f(std::span<float>(out.data(), out.size()), std::span<const float>(in.data(), in.size()));
  } else {
    std::vector<float> results(out.size()), values(in.size());
    copy_to_host(exec, values, in);
    f(std::span<float>(results), std::span<const float>(values));
    copy_from_host(exec, out, results);
  }
}
// f(values on the host), in place.
template <class F>
void through_host(const Exec& exec, FloatVector data, const F& f) {
  if constexpr (std::is_same_v<Exec, HostExec>) {
    f(std::span<float>(data.data(), data.size()));
  } else {
    through_host(exec, data, ConstFloatVector(data),
                 [&](std::span<float> results, std::span<const float> values) {
                   std::copy(values.begin(), values.end(), results.begin());
                   f(results);
                 });
  }
}

#if defined(TAPER_CUDA)
// Memory of GPUs and NCCL (TreeReducer::sum_through).
class DeviceMedium {
 public:
  DeviceMedium(const Exec& exec, const Group& group) : exec_(exec), group_(group) {}

  int rank() const { return group_.rank(); }
  void all_gather_v(float* out, const float* in, std::span<const std::int64_t> counts) const {
    nccl::all_gather_v(group_, exec_.stream(), out, in, counts);
  }
  void all_to_all_v(float* out, std::span<const std::int64_t> out_counts, const float* in,
                    std::span<const std::int64_t> in_counts) const {
    nccl::all_to_all_v(group_, exec_.stream(), out, out_counts, in, in_counts);
  }
  void copy(float* out, const float* in, std::int64_t count) const {
    taper::copy(exec_, FloatVector(out, count), ConstFloatVector(in, count));
  }
  void run(std::span<const int> program, float* out, const float* values,
           std::int64_t length) const {
    sum_tree(exec_, FloatVector(out, length), ConstFloatMatrix(values, program.size(), length),
             program);
  }

 private:
  const Exec& exec_;
  const Group& group_;
};
#endif

}  // namespace

void all_gather_v(const Exec& exec, const Group& group, FloatVector out, ConstFloatVector in,
                  std::span<const std::int64_t> counts) {
#if defined(TAPER_CUDA)
  if (group.connects_devices())
    return nccl::all_gather_v(group, exec.stream(), out.data(), in.data(), counts);
#endif
  through_host(exec, out, in, [&](std::span<float> all, std::span<const float> mine) {
    all_gather_v(group, all, mine, counts);
  });
}

void all_reduce_max(const Exec& exec, const Group& group, FloatVector data) {
  if (group.is_null()) return;
#if defined(TAPER_CUDA)
  if (group.connects_devices())
    return nccl::all_reduce_max(group, exec.stream(), data.data(),
                                static_cast<std::int64_t>(data.size()));
#endif
  through_host(exec, data, [&](std::span<float> values) { all_reduce_max(group, values); });
}

void all_reduce_ordered_sum(const Exec& exec, const Group& group, FloatVector data) {
  if (group.is_null()) return;
  through_host(exec, data, [&](std::span<float> values) { all_reduce_ordered_sum(group, values); });
}

void all_reduce_ordered_sum(const Exec& exec, const Group& group, FloatVector data,
                            [[maybe_unused]] const TreeReducer& by,
                            [[maybe_unused]] FloatVector workspace) {
#if defined(TAPER_CUDA)
  const auto count = static_cast<int>(data.size());
  if (group.connects_devices() && workspace.size() >= by.workspace_floats(1, count))
    return by.sum_through(DeviceMedium(exec, group), data.data(), data.data(), 1, count,
                          workspace.data());
#endif
  all_reduce_ordered_sum(exec, group, data);
}

std::int64_t exchange_floats([[maybe_unused]] const Group& group) {
#if defined(TAPER_CUDA)
  constexpr std::int64_t kFromEach = std::int64_t{4} << 20;
  if (group.connects_devices()) return kFromEach * group.size();
#endif
  return 0;
}

#if defined(TAPER_CUDA)
namespace {

// Stretches of all ranks' parts at a time: each rank receives its own one of all ranks, and adds.
void reduce_scatter_between_devices(const Exec& exec, const Group& group, FloatVector out,
                                    ConstFloatVector in, std::span<const std::int64_t> offsets,
                                    FloatVector workspace) {
  const int n = group.size(), me = group.rank();
  const TreeReducer by = TreeReducer::over_ranks(n);
  const auto step = static_cast<std::int64_t>(workspace.size()) / n;
  std::int64_t longest = 0;
  for (int r = 0; r < n; ++r) longest = std::max(longest, offsets[r + 1] - offsets[r]);
  const auto stretch_of = [&](int r, std::int64_t at) {
    return std::clamp<std::int64_t>(offsets[r + 1] - offsets[r] - at, 0, step);
  };
  for (std::int64_t at = 0; at < longest; at += step) {
    const std::int64_t mine = stretch_of(me, at);
    std::vector<nccl::Stretch> received, sent;
    for (int r = 0; r < n; ++r) {
      sent.push_back({r, in.data() + offsets[r] + at, stretch_of(r, at)});
      received.push_back({r, workspace.data() + r * mine, mine});
    }
    nccl::exchange(group, "nccl::reduce_scatter_ordered_sum", exec.stream(), received, sent);
    if (mine > 0)
      sum_tree(exec, FloatVector(out.data() + at, mine),
               ConstFloatMatrix(workspace.data(), n, mine), by.program());
  }
}

}  // namespace
#endif

void reduce_scatter_ordered_sum(const Exec& exec, const Group& group, FloatVector out,
                                ConstFloatVector in, std::span<const std::int64_t> offsets,
                                [[maybe_unused]] FloatVector workspace) {
#if defined(TAPER_CUDA)
  if (group.connects_devices())
    return reduce_scatter_between_devices(exec, group, out, in, offsets, workspace);
#endif
  through_host(exec, out, in, [&](std::span<float> mine, std::span<const float> all) {
    reduce_scatter_ordered_sum(group, mine, all, offsets);
  });
}

void tree_sum(const Exec& exec, const TreeReducer& reducer, const Group& group, FloatMatrix out,
              const float* partials, float* workspace) {
  const int rows = out.extent_int(0), cols = out.extent_int(1);
  const std::size_t floats = out.size();
  if (group.is_null()) {  // one shard of all leaves is one node: its only partial is the sum
    if (out.data() != partials)
      copy(exec, FloatVector(out.data(), floats), ConstFloatVector(partials, floats));
#if defined(TAPER_CUDA)
  } else if (group.connects_devices()) {
    reducer.sum_through(DeviceMedium(exec, group), out.data(), partials, rows, cols, workspace);
#endif
  } else if constexpr (std::is_same_v<Exec, HostExec>) {
    reducer.sum(group, out.data(), partials, rows, cols, workspace);
  } else {
    const std::size_t mine = floats * static_cast<std::size_t>(reducer.partials(group.rank()));
    std::vector<float> room(reducer.workspace_floats(rows, cols));
    through_host(exec, FloatVector(out.data(), floats), ConstFloatVector(partials, mine),
                 [&](std::span<float> sum, std::span<const float> values) {
                   reducer.sum(group, sum.data(), values.data(), rows, cols, room.data());
                 });
  }
}

}  // namespace taper
