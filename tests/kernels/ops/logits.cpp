// SPDX-License-Identifier: Apache-2.0
#include "kernels/logits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/canonical/logits.hpp"
#include "kernels/ops/Data.hpp"
#include "kernels/ops/Op.hpp"
#include "kernels/reference/logits.hpp"

namespace taper::test {
namespace {

// One row of logits over `shards` shards of equal padded width, the last columns of the last one
// beyond the tokenizer.
struct Vocabulary {
  int shards, width, valid;  // width: columns of a shard
  int valid_in(int shard) const { return std::clamp(valid - shard * width, 0, width); }
};

struct Data {
  Vocabulary vocabulary;
  int rows;
  float temperature;
  std::vector<Floats> raw, scaled;  // per shard (rows, width)
  Floats max;                       // of the whole rows
  Staged<std::int64_t> mass;        // of the whole rows
};

reference::Vector raw_row(const Data& d, int row) {
  reference::Vector all;
  for (int s = 0; s < d.vocabulary.shards; ++s)
    for (int c = 0; c < d.vocabulary.valid_in(s); ++c)
      all.push_back(d.raw[s][row * d.vocabulary.width + c]);
  return all;
}

Floats scaled_row(const Data& d, int row) {
  Floats all;
  for (int s = 0; s < d.vocabulary.shards; ++s)
    for (int c = 0; c < d.vocabulary.valid_in(s); ++c)
      all.push_back(d.scaled[s][row * d.vocabulary.width + c]);
  return all;
}

std::string label(const Data& d) {
  return std::to_string(d.rows) + " x " + std::to_string(d.vocabulary.valid) + " over " +
         std::to_string(d.vocabulary.shards);
}

// Scales all shards and takes maxima and masses over them, against the unsharded row.
Data scale_and_sum(Report& report, const Vocabulary& v, int rows, float temperature) {
  Data d{v, rows, temperature, {}, {}, Floats(rows, -INFINITY), Staged<std::int64_t>(rows)};
  for (int s = 0; s < v.shards; ++s) {
    d.raw.push_back(random_floats(std::int64_t{rows} * v.width, 10 + s, -12, 12));
    d.scaled.push_back(d.raw[s]);
    Floats max(rows);
    scale_logits(Exec(), view(d.scaled[s], rows, v.width), view(max), v.valid_in(s), temperature);
    Exec().fence();
    for (int r = 0; r < rows; ++r) d.max[r] = std::max(d.max[r], max[r]);
    for (int r = 0; r < rows; ++r)
      for (int c = v.valid_in(s); c < v.width; ++c)
        report.expect_equal("logit beyond the vocabulary", d.scaled[s][r * v.width + c], -INFINITY);
  }
  for (int s = 0; s < v.shards; ++s) {
    Staged<std::int64_t> mass(rows);
    sum_masses(Exec(), view(mass), const_view(d.scaled[s], rows, v.width), const_view(d.max),
               v.valid_in(s));
    Exec().fence();
    for (int r = 0; r < rows; ++r) d.mass[r] += mass[r];
  }
  for (int r = 0; r < rows; ++r) {
    const reference::Vector raw = raw_row(d, r);
    Floats wanted(raw.begin(), raw.end());
    const int n = static_cast<int>(wanted.size());
    const float max = canonical::scale_logits(wanted.data(), n, temperature);
    report.expect_equal("scaled logits " + label(d), scaled_row(d, r), wanted);
    report.expect_equal("maximum " + label(d), d.max[r], max);
    report.expect_equal("mass " + label(d), static_cast<double>(d.mass[r]),
                        static_cast<double>(canonical::sum_masses(wanted.data(), n, max)));
    const reference::Vector right = {reference::log_sum_exp(raw, temperature),
                                     reference::log_prob(raw, temperature, n / 2)};
    report.expect_close(
        "log-sum-exp, log-prob " + label(d),
        reference::Vector{log_sum_exp(max, d.mass[r]), log_prob(wanted[n / 2], max, d.mass[r])},
        right, 1e-6);
  }
  return d;
}

// NaNs, one or several of them, whose integers could cancel, wherever threads find them.
void compare_damaged(Report& report) {
  constexpr int kRows = 4, kColumns = 5000;
  Floats logits = random_floats(std::int64_t{kRows} * kColumns, 7, -12, 12), max(kRows);
  for (const int place :
       {0 * kColumns, 1 * kColumns + 17, 1 * kColumns + 18, 2 * kColumns + 40, 2 * kColumns + 4999})
    logits[place] = NAN;
  const auto matrix = view(logits, kRows, kColumns);
  scale_logits(Exec(), matrix, view(max), kColumns, 1.0f);
  Staged<std::int64_t> mass(kRows);
  sum_masses(Exec(), view(mass), const_view(logits, kRows, kColumns), const_view(max), kColumns);
  Exec().fence();
  for (int r = 0; r < kRows - 1; ++r)
    report.expect_equal("mass of a row with NaN", static_cast<double>(mass[r]), -1.0);
  report.expect_equal("a row without NaN has a mass", mass[kRows - 1] > 0 ? 1.0 : 0.0, 1.0);
}

// Levels of masses, and the ids of the heaviest ones: another number of levels of each row, none of
// one of them.
void compare_levels(Report& report, const Data& d) {
  const Vocabulary& v = d.vocabulary;
  for (int s = 0; s < v.shards; ++s) {
    const int n = v.valid_in(s);
    const auto logits = const_view(d.scaled[s], d.rows, v.width);
    Staged<MassLevel> levels(static_cast<std::size_t>(d.rows) * kMassLevels, MassLevel{-1, -1});
    count_mass_levels(Exec(), view(levels, d.rows, kMassLevels), logits, const_view(d.max), n);
    Exec().fence();
    Staged<std::int64_t> begin(d.rows), least(d.rows, std::numeric_limits<std::int64_t>::max());
    std::int64_t places = 0;
    for (int r = 0; r < d.rows; ++r) {
      std::vector<std::int64_t> ids(kMassLevels), masses(kMassLevels), wanted_ids(kMassLevels),
          wanted_masses(kMassLevels);
      for (int c = 0; c < n; ++c) {
        const std::int64_t mass = canonical::mass(d.scaled[s][r * v.width + c], d.max[r]);
        if (mass == 0) continue;
        int level = 0;
        while (mass < least_mass(level)) ++level;
        ++wanted_ids[level];
        wanted_masses[level] += mass;
      }
      begin[r] = places;
      if (r != 1) least[r] = least_mass(std::min(8 * r, kMassLevels - 1));
      for (int j = 0; j < kMassLevels; ++j) {
        const MassLevel& level = levels[static_cast<std::size_t>(r) * kMassLevels + j];
        ids[j] = level.ids;
        masses[j] = level.mass;
        if (least_mass(j) >= least[r]) places += level.ids;
      }
      report.expect_equal("ids of levels " + label(d), ids, wanted_ids);
      report.expect_equal("masses of levels " + label(d), masses, wanted_masses);
    }
    Staged<WeightedLogit> list(places);
    list_weighted_logits(Exec(), view(list), const_view(begin), const_view(least), logits,
                         const_view(d.max), n);
    Exec().fence();
    for (int r = 0; r < d.rows; ++r) {
      const auto end = r + 1 < d.rows ? list.begin() + begin[r + 1] : list.end();
      std::sort(list.begin() + begin[r], end,
                [](const auto& a, const auto& b) { return a.column < b.column; });
      auto at = list.begin() + begin[r];
      for (int c = 0; c < n; ++c) {
        const float logit = d.scaled[s][r * v.width + c];
        const std::int64_t mass = canonical::mass(logit, d.max[r]);
        if (mass < least[r]) continue;
        const WeightedLogit found = at == end ? WeightedLogit() : *at++;
        report.expect_equal("listed ids " + label(d), found.column, c);
        report.expect_equal("listed logits " + label(d), found.logit, logit);
        report.expect_equal("listed masses " + label(d), static_cast<double>(found.mass),
                            static_cast<double>(mass));
      }
      report.expect_equal("listed ids are all " + label(d), at == end ? 1.0 : 0.0, 1.0);
    }
  }
}

// The lowest column of the largest logit, single logits, and the penalty, on each shard.
void compare_places(Report& report, const Data& d) {
  const Vocabulary& v = d.vocabulary;
  for (int s = 0; s < v.shards; ++s) {
    const int n = v.valid_in(s);
    Staged<std::int32_t> column(d.rows);
    find_max(Exec(), view(column), const_view(d.scaled[s], d.rows, v.width), const_view(d.max), n);
    Exec().fence();
    Staged<LogitPlace> places, inside;
    Floats picked, wanted, penalized = d.raw[s], expected = d.raw[s];
    for (int r = 0; r < d.rows; ++r) {
      const float* row = &d.scaled[s][r * v.width];
      const float* first = std::find(row, row + n, d.max[r]);
      report.expect_equal("lowest maximum " + label(d), column[r],
                          first == row + n ? -1.0 : static_cast<double>(first - row));
      places.push_back({r, column[r]});
      wanted.push_back(column[r] < 0 ? -INFINITY : row[column[r]]);
      for (int c = r; c < n; c += 3) {
        inside.push_back({r, c});
        float& logit = expected[r * v.width + c];
        logit = logit < 0.0f ? logit * 1.3f : logit / 1.3f;
      }
    }
    picked.resize(places.size());
    pick_logits(Exec(), view(picked), const_view(d.scaled[s], d.rows, v.width), const_view(places));
    report.expect_equal("picked logits " + label(d), picked, wanted);
    penalize_logits(Exec(), view(penalized, d.rows, v.width), const_view(inside), 1.3f);
    report.expect_equal("penalized logits " + label(d), penalized, expected);
  }
}

// Samples by masses: shard by shard, with the masses before a shard taken off the target.
void compare_samples(Report& report, const Data& d) {
  const Vocabulary& v = d.vocabulary;
  for (const double u : {0.0, 0.1, 0.5, 0.77, 0.999999}) {
    Staged<std::int64_t> target, choice(d.rows, -1), wanted;
    for (int r = 0; r < d.rows; ++r) {
      target.push_back(static_cast<std::int64_t>(u * static_cast<double>(d.mass[r])));
      const Floats row = scaled_row(d, r);
      wanted.push_back(
          canonical::find_mass(row.data(), static_cast<int>(row.size()), d.max[r], target[r]));
    }
    for (int s = 0; s < v.shards; ++s) {
      Staged<FoundLogit> found(d.rows);
      Staged<std::int64_t> mass(d.rows);
      const auto logits = const_view(d.scaled[s], d.rows, v.width);
      find_masses(Exec(), view(found), logits, const_view(d.max), const_view(target),
                  v.valid_in(s));
      sum_masses(Exec(), view(mass), logits, const_view(d.max), v.valid_in(s));
      Exec().fence();
      for (int r = 0; r < d.rows; ++r) {
        const int column = found[r].column;
        report.expect_equal(
            "logit of what is found " + label(d), found[r].logit,
            column < 0 ? -INFINITY : d.scaled[s][static_cast<std::size_t>(r) * v.width + column]);
        if (column >= 0) {
          report.expect_equal("one shard answers " + label(d), static_cast<double>(choice[r]),
                              -1.0);
          choice[r] = s * v.width + column;
        }
        target[r] -= mass[r];  // negative from here on if this shard answered
      }
    }
    report.expect_equal("sampled ids " + label(d), choice, wanted);
  }
}

// Entropy and gradient over shards, against the whole row.
void compare_gradients(Report& report, const Data& d) {
  const Vocabulary& v = d.vocabulary;
  Staged<LogitSlope> slopes(d.rows);
  Staged<std::int64_t> weighted(d.rows);
  for (int s = 0; s < v.shards; ++s) {
    Staged<std::int64_t> part(d.rows);
    sum_weighted_logits(Exec(), view(part), const_view(d.scaled[s], d.rows, v.width),
                        const_view(d.max), v.valid_in(s));
    Exec().fence();
    for (int r = 0; r < d.rows; ++r) {
      const float* row = &d.scaled[s][r * v.width];
      report.expect_equal("weighted logits " + label(d), part[r],
                          canonical::sum_weighted_logits(row, v.valid_in(s), d.max[r]));
      weighted[r] += part[r];
    }
  }
  const int wanted_target = v.valid * 2 / 3;
  for (int r = 0; r < d.rows; ++r) {
    const auto total = static_cast<double>(d.mass[r]), sum = static_cast<double>(weighted[r]);
    slopes[r] = {log_sum_exp(d.max[r], d.mass[r]),
                 static_cast<float>(std::log(total * 0x1p-40) - sum / total),
                 0.5f - 0.1f * static_cast<float>(r), r % 2 == 0 ? 0.0f : 0.03f};
    report.expect_close("entropy " + label(d), reference::Vector{slopes[r].entropy},
                        reference::Vector{reference::entropy(raw_row(d, r), d.temperature)}, 1e-5);
  }
  std::vector<reference::Vector> right;
  for (int r = 0; r < d.rows; ++r)
    right.push_back(reference::logit_gradient(raw_row(d, r), d.temperature, wanted_target,
                                              slopes[r].by_log_prob, slopes[r].by_entropy));
  for (int s = 0; s < v.shards; ++s) {
    const int local = wanted_target - s * v.width;
    const Staged<std::int32_t> target(d.rows, local >= 0 && local < v.width ? local : -1);
    Floats gradient = d.scaled[s], wanted(gradient.size());
    logit_gradients(Exec(), view(gradient, d.rows, v.width), const_view(slopes), const_view(target),
                    v.valid_in(s), d.temperature);
    for (int r = 0; r < d.rows; ++r) {
      const int n = v.valid_in(s);
      std::copy_n(&d.scaled[s][r * v.width], n, &wanted[r * v.width]);
      canonical::logit_gradients(&wanted[r * v.width], n, slopes[r].lse, slopes[r].entropy,
                                 slopes[r].by_log_prob, slopes[r].by_entropy, target[r],
                                 d.temperature);
      const auto first = right[r].begin() + s * v.width;
      report.expect_close("logit gradient " + label(d),
                          std::span<const float>(gradient).subspan(r * v.width, n),
                          reference::Vector(first, first + n), 1e-4);
    }
    report.expect_equal("logit gradients " + label(d), gradient, wanted);
  }
}

void compare(Report& report) {
  compare_damaged(report);
  for (const Vocabulary& v : std::vector<Vocabulary>{{1, 64, 1},
                                                     {1, 64, 17},
                                                     {1, 128, 100},
                                                     {1, 1024, 1000},
                                                     {2, 64, 100},
                                                     {3, 128, 300},
                                                     {4, 256, 1024}})
    for (const float temperature : {1.0f, 0.7f}) {
      const Data d = scale_and_sum(report, v, 5, temperature);
      compare_levels(report, d);
      compare_places(report, d);
      compare_samples(report, d);
      compare_gradients(report, d);
    }
}

void gradient(Report& report) {
  const reference::Vector raw = to_doubles(random_floats(9, 1, -3, 3));
  const double temperature = 0.8, by_log_prob = -1.3, by_entropy = 0.2;
  const int target = 4;
  report.expect_close(
      "reference", reference::logit_gradient(raw, temperature, target, by_log_prob, by_entropy),
      finite_differences(raw,
                         [&](const auto& at) {
                           return by_log_prob * reference::log_prob(at, temperature, target) +
                                  by_entropy * reference::entropy(at, temperature);
                         }),
      1e-7);
}

void time(const Stopwatch& watch) {
  const int rows = 8, columns = 49152;
  const Floats raw = random_floats(std::int64_t{rows} * columns, 1, -12, 12);
  Floats logits = raw, max(rows);
  Staged<std::int64_t> mass(rows), target(rows);
  Staged<FoundLogit> found(rows);
  const double bytes = 4.0 * logits.size();
  const auto matrix = view(logits, rows, columns);
  watch.measure(
      "scale_logits 8 x 49152", [&] { scale_logits(Exec(), matrix, view(max), columns, 1.0f); },
      2 * bytes, 0);
  watch.measure(
      "sum_masses 8 x 49152",
      [&] {
        sum_masses(Exec(), view(mass), const_view(logits, rows, columns), const_view(max), columns);
      },
      bytes, 0);
  for (int r = 0; r < rows; ++r) target[r] = mass[r] / 2;
  watch.measure(
      "find_masses 8 x 49152, half way",
      [&] {
        find_masses(Exec(), view(found), const_view(logits, rows, columns), const_view(max),
                    const_view(target), columns);
      },
      bytes / 2, 0);
  Staged<MassLevel> levels(static_cast<std::size_t>(rows) * kMassLevels);
  watch.measure(
      "count_mass_levels 8 x 49152",
      [&] {
        count_mass_levels(Exec(), view(levels, rows, kMassLevels),
                          const_view(logits, rows, columns), const_view(max), columns);
      },
      bytes, 0);
  const Staged<LogitSlope> slopes(rows, LogitSlope{12.0f, 5.0f, 1e-3f, 1e-3f});
  const Staged<std::int32_t> ids(rows, 17);
  watch.measure(
      "logit_gradients 8 x 49152",
      [&] { logit_gradients(Exec(), matrix, const_view(slopes), const_view(ids), columns, 1.0f); },
      2 * bytes, 0);
}

}  // namespace

Op logits_op() {
  return {"logits", compare, gradient, time};
}

}  // namespace taper::test
