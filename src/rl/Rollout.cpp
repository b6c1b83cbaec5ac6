// SPDX-License-Identifier: Apache-2.0
#include "rl/Rollout.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <tuple>

#include "comm/Collectives.hpp"

namespace taper {
namespace {

// Samples as bytes, for the exchange between ranks of one machine type.
class Packer {
 public:
  template <class T>
  void put(const T& value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    data_.insert(data_.end(), bytes, bytes + sizeof(T));
  }
  template <class T>
  void put_list(const std::vector<T>& values) {
    put(static_cast<std::int64_t>(values.size()));
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    data_.insert(data_.end(), bytes, bytes + values.size() * sizeof(T));
  }
  const std::vector<std::byte>& data() const { return data_; }

 private:
  std::vector<std::byte> data_;
};

class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> data) : data_(data) {}

  bool done() const { return data_.empty(); }
  template <class T>
  void get(T& value) {
    std::memcpy(&value, data_.data(), sizeof(T));
    data_ = data_.subspan(sizeof(T));
  }
  template <class T>
  void get_list(std::vector<T>& values) {
    std::int64_t size = 0;
    get(size);
    values.resize(static_cast<std::size_t>(size));
    std::memcpy(values.data(), data_.data(), values.size() * sizeof(T));
    data_ = data_.subspan(values.size() * sizeof(T));
  }

 private:
  std::span<const std::byte> data_;
};

void pack(Packer& out, const Sample& s) {
  out.put(s.ordinal);
  out.put(s.sample);
  out.put(s.finish);
  out.put(s.score);
  out.put_list(s.prompt);
  out.put_list(s.response);
  out.put_list(s.log_probs);
  out.put_list(s.kept_mass);
  out.put_list(s.rewards);
  out.put_list(s.spans);
}

Sample unpack(Unpacker& in) {
  Sample s;
  in.get(s.ordinal);
  in.get(s.sample);
  in.get(s.finish);
  in.get(s.score);
  in.get_list(s.prompt);
  in.get_list(s.response);
  in.get_list(s.log_probs);
  in.get_list(s.kept_mass);
  in.get_list(s.rewards);
  in.get_list(s.spans);
  return s;
}

}  // namespace

std::vector<Sample> gather_samples(const Group& group, const std::vector<Sample>& mine) {
  Packer packer;
  for (const Sample& s : mine) pack(packer, s);
  std::vector<std::int64_t> counts(group.size());
  all_gather(group, counts,
             std::vector<std::int64_t>{static_cast<std::int64_t>(packer.data().size())});
  std::int64_t total = 0;
  for (const auto count : counts) total += count;
  std::vector<std::byte> all(static_cast<std::size_t>(total));
  all_gather_v(group, all, packer.data(), counts);
  std::vector<Sample> samples;
  for (Unpacker in(all); !in.done();) samples.push_back(unpack(in));
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) {
    return std::tie(a.ordinal, a.sample) < std::tie(b.ordinal, b.sample);
  });
  return samples;
}

}  // namespace taper
