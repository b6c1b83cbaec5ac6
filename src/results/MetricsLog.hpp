// SPDX-License-Identifier: Apache-2.0
//
// metrics.jsonl, the log of record of a run: one line of JSON per append, "step" first, then the
// values in the order given. Numbers keep all their digits. JSON has no non-finite numbers: they
// are the strings "nan", "inf", "-inf".
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/MetricValues.hpp"
#include "io/Descriptor.hpp"

namespace taper {

struct MetricsRecord {
  std::int64_t iteration = 0;
  MetricValues values;
};

enum class OpenMode { kAppend, kTruncate };

class MetricsLog {
 public:
  // Creates the file if it does not exist. kAppend cuts a last line that a crash left torn.
  MetricsLog(const std::filesystem::path& path, OpenMode mode);

  // One line in one write(2), then to disk. Iterations may repeat (validation) but never go back.
  // After an error (disk full) the file ends with the line before.
  void append(const MetricValues& values, std::int64_t iteration);

  // Drops what lies beyond iteration, for a run resumed from there.
  void truncate_after(std::int64_t iteration);

 private:
  detail::Descriptor file_;
  std::int64_t size_ = 0;
  std::int64_t last_iteration_;
};

// All complete lines; one without its newline is still being written and is left out. Errors are
// "file:line: ...".
std::vector<MetricsRecord> read_metrics_log(const std::filesystem::path& path);

}  // namespace taper
