// SPDX-License-Identifier: Apache-2.0
#include "results/MetricsLog.hpp"

#include <fcntl.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "io/AtomicFile.hpp"
#include "io/Json.hpp"

namespace taper {

namespace {

constexpr std::int64_t kNoIteration = std::numeric_limits<std::int64_t>::min();

void add_number(std::string& line, double value) {
  if (!std::isfinite(value)) {
    line += std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
    return;
  }
  if (value == 0 && std::signbit(value)) {
    line += "-0.0";  // "-0" would be read as an integer and lose its sign
    return;
  }
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  line.append(digits, end);
}

double number_of(const OrderedJson& value, const std::string& where, const std::string& key) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  TAPER_FAIL(ExitCode::kBadInput, where << ": \"" << key << "\" is " << value.dump()
                                        << " (a number or \"nan\", \"inf\", \"-inf\" expected)");
}

MetricsRecord record_of(std::string_view text, const std::string& where) {
  const OrderedJson line = parse_ordered_json(text, where);
  TAPER_VALIDATE(line.is_object() && line.contains("step") && line["step"].is_number_integer(),
                 where << ": not a metrics line (an object with an integer \"step\" expected)");
  MetricsRecord record{line["step"].get<std::int64_t>(), {}};
  for (const auto& [key, value] : line.items()) {
    if (key != "step") record.values.emplace_back(key, number_of(value, where, key));
  }
  return record;
}

// Whoever finds a broken line must be told the ways out: it is the only copy of its iteration.
// last: iteration of the line before.
MetricsRecord parse_record(std::string_view text, const std::string& where, std::int64_t last) {
  try {
    MetricsRecord record = record_of(text, where);
    TAPER_VALIDATE(record.iteration >= last, where << ": \"step\" is " << record.iteration
                                                   << " (it is " << last << " before)");
    return record;
  } catch (const Error& error) {
    TAPER_FAIL(error.code(), error.what() << "; delete this line (its iteration is then missing in "
                                             "the metrics), or start over in another output "
                                             "directory with --resume none");
  }
}

std::string read_all(const detail::Descriptor& file) {
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

// visit(record, begin, end) for each complete line at bytes [begin, end); returns the end of the
// last one.
template <class Visit>
std::int64_t for_each_record(const detail::Descriptor& file, Visit&& visit) {
  const std::string text = read_all(file);
  std::size_t begin = 0;
  std::int64_t last = kNoIteration;
  for (std::int64_t line = 1;; ++line) {
    const auto end = text.find('\n', begin);
    if (end == std::string::npos) return static_cast<std::int64_t>(begin);
    const auto content = std::string_view(text).substr(begin, end - begin);
    if (content.find_first_not_of(" \t\r") != std::string_view::npos) {
      MetricsRecord record = parse_record(content, line_text(file.path(), line), last);
      last = record.iteration;
      visit(std::move(record), begin, end + 1);
    }
    begin = end + 1;
  }
}

detail::Descriptor open_log(const std::filesystem::path& path, OpenMode mode) {
  const auto directory =
      path.parent_path().empty() ? std::filesystem::path(".") : path.parent_path();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) detail::throw_errno("create the directory of", path, error.value());
  detail::Descriptor file(path, O_RDWR | O_CREAT | (mode == OpenMode::kTruncate ? O_TRUNC : 0));
  sync_directory(directory);
  return file;
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& path, OpenMode mode)
    : file_(open_log(path, mode)), last_iteration_(kNoIteration) {
  size_ = for_each_record(file_, [&](const MetricsRecord& record, std::size_t, std::size_t) {
    last_iteration_ = record.iteration;
  });
  const auto torn = file_.size() - size_;
  if (torn > 0) {
    TAPER_WARN(path_text(path) << " ends in the middle of a line; its last " << torn
                               << " bytes were cut off");
    file_.truncate(size_);
  }
}

void MetricsLog::append(const MetricValues& values, std::int64_t iteration) {
  TAPER_INSIST(iteration >= last_iteration_, path_text(file_.path())
                                                 << ": iteration " << iteration << " after "
                                                 << last_iteration_ << " without truncate_after");
  std::string line = "{\"step\": " + std::to_string(iteration);
  for (const auto& [key, value] : values) {
    TAPER_VALIDATE(key != "step",
                   "the metric name \"step\" is taken (it holds the iteration); use another name");
    line += ", " + Json(key).dump() + ": ";
    add_number(line, value);
  }
  line += "}\n";
  try {
    file_.write_at(size_, std::as_bytes(std::span(line.data(), line.size())));
    file_.sync();
  } catch (const Error&) {
    file_.truncate(size_);
    throw;
  }
  size_ += static_cast<std::int64_t>(line.size());
  last_iteration_ = iteration;
}

void MetricsLog::truncate_after(std::int64_t iteration) {
  std::int64_t keep = size_;
  last_iteration_ = kNoIteration;
  for_each_record(file_, [&](const MetricsRecord& record, std::size_t begin, std::size_t) {
    if (record.iteration <= iteration) {
      last_iteration_ = record.iteration;
    } else {
      keep = std::min(keep, static_cast<std::int64_t>(begin));
    }
  });
  file_.truncate(keep);
  file_.sync();
  size_ = keep;
}

std::vector<MetricsRecord> read_metrics_log(const std::filesystem::path& path) {
  std::vector<MetricsRecord> records;
  for_each_record(detail::Descriptor(path, O_RDONLY),
                  [&](MetricsRecord record, std::size_t, std::size_t) {
                    records.push_back(std::move(record));
                  });
  return records;
}

}  // namespace taper
