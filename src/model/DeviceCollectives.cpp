// SPDX-License-Identifier: Apache-2.0
#include "model/DeviceCollectives.hpp"

#include <algorithm>
#include <vector>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "kernels/activation.hpp"
#include "kernels/copy.hpp"
#if defined(TAPER_CUDA)
#include "comm/nccl/Transport.hpp"
#include "comm/peers/Windows.hpp"
#include "kernels/peer_sum.hpp"
#include "kernels/tree_sum.hpp"
#endif

namespace taper {
namespace {

template <class T>
using Vector = VectorView<T, Exec>;

// f(out, in) with the values on the host; what it leaves there is in `out` afterwards.
template <class T, class F>
void through_host(const Exec& exec, Vector<T> out, Vector<const T> in, const F& f) {
  if constexpr (kOnHost) {
    f(std::span<T>(out.data(), out.size()), std::span<const T>(in.data(), in.size()));
  } else {
    std::vector<T> results(out.size()), values(in.size());
    copy_to_host(exec, values, in);
    f(std::span<T>(results), std::span<const T>(values));
    copy_from_host(exec, out, results);
  }
}
// f(values on the host), in place.
template <class T, class F>
void through_host(const Exec& exec, Vector<T> data, const F& f) {
  if constexpr (kOnHost) {
    f(std::span<T>(data.data(), data.size()));
  } else {
    through_host<T>(exec, data, data, [&](std::span<T> results, std::span<const T> values) {
      std::copy(values.begin(), values.end(), results.begin());
      f(results);
    });
  }
}

// f(vectors of the sums), all of the type of the first.
template <class F, class... More>
void with_sums(const F& f, const GradientView& first, const More&... more) {
  const auto size = [](const GradientView& v) { return static_cast<std::size_t>(v.size()); };
  if (first.is_fixed())
    f(Vector<Fixed>(first.fixed(), size(first)), Vector<Fixed>(more.fixed(), size(more))...);
  else
    f(FloatVector(first.f32(), size(first)), FloatVector(more.f32(), size(more))...);
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
  through_host<float>(exec, out, in, [&](std::span<float> all, std::span<const float> mine) {
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
  through_host<float>(exec, data, [&](std::span<float> values) { all_reduce_max(group, values); });
}

std::int64_t exchange_floats([[maybe_unused]] const Group& group) {
#if defined(TAPER_CUDA)
  constexpr std::int64_t kFromEach = std::int64_t{4} << 20;
  if (group.connects_devices()) return kFromEach * group.size();
#endif
  return 0;
}

void all_reduce_sum(const Exec& exec, const Group& group, const GradientView& sums) {
  if (group.is_null()) return;
  with_sums(
      [&]<class T>(Vector<T> data) {
        through_host<T>(exec, data,
                        [&](std::span<T> values) { all_reduce_ordered_sum(group, values); });
      },
      sums);
}

#if defined(TAPER_CUDA)
namespace {

// out = the sum of the stretches that the ranks sent, which stand one after another.
void add_received(const Exec& exec, FloatVector out, const float* received, int ranks) {
  sum_tree(exec, out, ConstFloatMatrix(received, static_cast<std::size_t>(ranks), out.size()),
           TreeReducer::over_ranks(ranks).program());
}
void add_received(const Exec& exec, Vector<Fixed> out, const Fixed* received, int ranks) {
  clear(exec, {out.data(), GradientType::kFixed, 1, static_cast<std::int64_t>(out.size())});
  for (int r = 0; r < ranks; ++r, received += out.size())
    add_fixed_sums(exec, out, Vector<const Fixed>(received, out.size()));
}

// Stretches of all ranks' parts at a time: each rank receives its own one of all ranks, and adds.
template <class T>
void reduce_scatter_between_devices(const Exec& exec, const Group& group, Vector<T> out,
                                    Vector<const T> in, std::span<const std::int64_t> offsets,
                                    FloatVector workspace) {
  constexpr std::int64_t kFloats = sizeof(T) / sizeof(float);  // of an element
  const int n = group.size(), me = group.rank();
  const auto step = static_cast<std::int64_t>(workspace.size()) / kFloats / n;
  T* const room = reinterpret_cast<T*>(workspace.data());
  std::int64_t longest = 0;
  for (int r = 0; r < n; ++r) longest = std::max(longest, offsets[r + 1] - offsets[r]);
  TAPER_INSIST(longest == 0 || step > 0,
               "a sum over GPUs has room for " << workspace.size() << " values in transit");
  const auto stretch = [&](int r, const T* data, std::int64_t count) {
    return nccl::Stretch{r, reinterpret_cast<const float*>(data), kFloats * count};
  };
  const auto length_of = [&](int r, std::int64_t at) {
    return std::clamp<std::int64_t>(offsets[r + 1] - offsets[r] - at, 0, step);
  };
  for (std::int64_t at = 0; at < longest; at += step) {
    const std::int64_t mine = length_of(me, at);
    std::vector<nccl::Stretch> received, sent;
    for (int r = 0; r < n; ++r) {
      sent.push_back(stretch(r, in.data() + offsets[r] + at, length_of(r, at)));
      received.push_back(stretch(r, room + r * mine, mine));
    }
    nccl::exchange(group, "nccl::reduce_scatter_sum", exec.stream(), received, sent);
    if (mine > 0) add_received(exec, Vector<T>(out.data() + at, mine), room, n);
  }
}

}  // namespace
#endif

void reduce_scatter_sum(const Exec& exec, const Group& group, const GradientView& out,
                        const GradientView& in, std::span<const std::int64_t> offsets,
                        [[maybe_unused]] FloatVector workspace) {
  TAPER_EXPECT(out.type == in.type);
  with_sums(
      [&]<class T>(Vector<T> mine, Vector<T> all) {
#if defined(TAPER_CUDA)
        if (group.connects_devices())
          return reduce_scatter_between_devices<T>(exec, group, mine, all, offsets, workspace);
#endif
        through_host<T>(exec, mine, all, [&](std::span<T> to, std::span<const T> from) {
          reduce_scatter_ordered_sum(group, to, from, offsets);
        });
      },
      out, in);
}

#if defined(TAPER_CUDA)
namespace {

static_assert(peers::Windows::kMostRanks == kMostPeers && peers::Windows::kParts == kPeerParts &&
              sizeof(PeerTurns) <= peers::Windows::kStateBytes);

bool fits_windows(const TreeReducer& reducer, const Group& group, FloatMatrix out) {
  const auto values = static_cast<std::int64_t>(reducer.program().size() * out.size());
  return group.windows() != nullptr && values <= peers::Windows::kPartFloats;
}

void sum_over_windows(const Exec& exec, const TreeReducer& reducer, const Group& group,
                      FloatMatrix out, const float* residual, const float* partials) {
  const peers::Windows& held = *group.windows();
  PeerWindows peers{group.rank(),
                    group.size(),
                    {},
                    static_cast<PeerTurns*>(held.state()),
                    peers::Windows::kPartFloats};
  std::vector<int> counts;
  for (int r = 0; r < group.size(); ++r) {
    peers.windows[r] = held.window(r);
    counts.push_back(reducer.partials(r));
  }
  peers::as_collective(group, "tree_sum", static_cast<std::int64_t>(out.size()), exec.stream(),
                       [&] {
                         peer_sum(exec, FloatVector(out.data(), out.size()), residual, partials,
                                  counts, reducer.program(), peers);
                       });
}

}  // namespace
#endif

void tree_sum(const Exec& exec, const TreeReducer& reducer, const Group& group, FloatMatrix out,
              const float* partials, float* workspace) {
  const int rows = out.extent_int(0), cols = out.extent_int(1);
  const std::size_t floats = out.size();
  if (group.is_null()) {  // one shard of all leaves is one node: its only partial is the sum
    if (out.data() != partials)
      copy(exec, FloatVector(out.data(), floats), ConstFloatVector(partials, floats));
#if defined(TAPER_CUDA)
  } else if (fits_windows(reducer, group, out)) {
    sum_over_windows(exec, reducer, group, out, nullptr, partials);
  } else if (group.connects_devices()) {
    reducer.sum_through(DeviceMedium(exec, group), out.data(), partials, rows, cols, workspace);
#endif
  } else if constexpr (kOnHost) {
    reducer.sum(group, out.data(), partials, rows, cols, workspace);
  } else {
    const std::size_t mine = floats * static_cast<std::size_t>(reducer.partials(group.rank()));
    std::vector<float> room(reducer.workspace_floats(rows, cols));
    through_host<float>(exec, FloatVector(out.data(), floats), ConstFloatVector(partials, mine),
                        [&](std::span<float> sum, std::span<const float> values) {
                          reducer.sum(group, sum.data(), values.data(), rows, cols, room.data());
                        });
  }
}

void tree_sum_and_add(const Exec& exec, const TreeReducer& reducer, const Group& group,
                      FloatMatrix out, ConstFloatMatrix x, const float* partials, FloatMatrix total,
                      float* workspace) {
#if defined(TAPER_CUDA)
  if (fits_windows(reducer, group, out))
    return sum_over_windows(exec, reducer, group, out, x.data(), partials);
#endif
  tree_sum(exec, reducer, group, total, partials, workspace);
  add(exec, FloatVector(out.data(), out.size()), ConstFloatVector(x.data(), x.size()),
      ConstFloatVector(total.data(), total.size()));
}

}  // namespace taper
