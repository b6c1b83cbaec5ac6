// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/Bf16.hpp"
#include "io/AtomicFile.hpp"
#include "io/Safetensors.hpp"

namespace taper {

struct TensorSpec {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<std::int64_t> shape;
};

// Writes a safetensors file from slices, in any order and with no tensor ever whole in memory. All
// tensors are declared first; their data stand in the declared order, wider types first so that all
// are aligned. The file appears at commit() only. The space is reserved at the start, so a disk
// that is too full shows before the work.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorSpec> tensors,
                    const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

  // The block [row_begin, row_end) x [column_begin, column_end); values: (rows, columns) of the
  // block. For F32 and BF16 (rounded to nearest even).
  void write_block(const std::string& name, std::int64_t row_begin, std::int64_t row_end,
                   std::int64_t column_begin, std::int64_t column_end,
                   std::span<const float> values);

  // Throws if a tensor is not fully written (by count: each piece is expected once).
  void commit();

 private:
  struct Slot {
    TensorSpec spec;
    std::int64_t begin = 0;  // in the file
    std::int64_t bytes = 0;
    std::int64_t written = 0;
  };

  Slot& slot(const std::string& name);
  void put(Slot& slot, std::int64_t offset, std::span<const std::byte> bytes);
  void put_floats(Slot& slot, std::int64_t first_element, std::span<const float> values);

  AtomicFile file_;
  std::map<std::string, Slot> slots_;
  std::vector<bf16> rounded_;  // scratch
};

}  // namespace taper
