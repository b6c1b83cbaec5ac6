// SPDX-License-Identifier: Apache-2.0
#include "rl/Sample.hpp"

#include <algorithm>
#include <string>
#include <tuple>

#include "base/Bytes.hpp"
#include "comm/Collectives.hpp"

namespace taper {
namespace {

void pack(ByteWriter& out, const Sample& s) {
  out.value(s.ordinal);
  out.value(s.sample);
  out.value(s.finish);
  out.value(s.score);
  out.value(s.unshaped_score);
  out.value(s.dropped);
  out.list(s.prompt);
  out.list(s.response);
  out.list(s.log_probs);
  out.list(s.kept_mass);
  out.list(s.rewards);
  out.list(s.spans);
}

Sample unpack(ByteReader& in) {
  Sample s;
  in.value(s.ordinal);
  in.value(s.sample);
  in.value(s.finish);
  in.value(s.score);
  in.value(s.unshaped_score);
  in.value(s.dropped);
  in.list(s.prompt);
  in.list(s.response);
  in.list(s.log_probs);
  in.list(s.kept_mass);
  in.list(s.rewards);
  in.list(s.spans);
  return s;
}

// The bytes of all ranks in rank order. Collective over `group`.
std::string gather_bytes(const Group& group, const std::string& bytes) {
  std::vector<std::int64_t> counts(group.size());
  all_gather(group, counts, std::vector<std::int64_t>{static_cast<std::int64_t>(bytes.size())});
  std::int64_t total = 0;
  for (const auto count : counts) total += count;
  std::string all(static_cast<std::size_t>(total), '\0');
  all_gather_v(group, all, bytes, counts);
  return all;
}

}  // namespace

std::int64_t Sample::loss_tokens() const {
  if (mask.empty()) return std::ssize(response);
  return std::ssize(mask) - std::count(mask.begin(), mask.end(), std::uint8_t{0});
}

double Sample::mean_advantage() const {
  double sum = 0.0;
  for (const float a : advantages) sum += a;
  return advantages.empty() ? 0.0 : sum / static_cast<double>(advantages.size());
}

std::size_t group_end(const std::vector<Sample>& samples, std::size_t begin) {
  std::size_t end = begin;
  while (end < samples.size() && samples[end].ordinal == samples[begin].ordinal) ++end;
  return end;
}

std::vector<Sample> gather_samples(const Group& group, const std::vector<Sample>& mine) {
  std::string bytes;
  ByteWriter out(bytes);
  for (const Sample& s : mine) pack(out, s);
  const std::string all = gather_bytes(group, bytes);
  std::vector<Sample> samples;
  for (ByteReader in(all); !in.done();) samples.push_back(unpack(in));
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) {
    return std::tie(a.ordinal, a.sample) < std::tie(b.ordinal, b.sample);
  });
  return samples;
}

void gather_figures(const Group& group, std::vector<Sample>& samples, const std::vector<int>& mine,
                    TokenFigures figures) {
  std::string bytes;
  ByteWriter out(bytes);
  for (const int i : mine) {
    out.value(i);
    out.list(samples[i].*figures);
  }
  const std::string all = gather_bytes(group, bytes);
  for (ByteReader in(all); !in.done();) {
    const int i = in.value<int>();
    in.list(samples.at(i).*figures);
  }
}

}  // namespace taper
