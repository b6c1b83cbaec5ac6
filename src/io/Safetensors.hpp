// SPDX-License-Identifier: Apache-2.0
//
// Reading of model weights in the safetensors format: 8 bytes of header length, a JSON header
// {name: {dtype, shape, data_offsets}}, then the raw little-endian tensors. Files are mapped, so
// only bytes asked for are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace taper {

enum class TensorType {
  kBool,
  kU8,
  kI8,
  kF8E4M3,
  kF8E5M2,
  kU16,
  kI16,
  kF16,
  kBf16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64
};

// The name in the header ("BF16"), and back; nullopt for one that is not known.
const char* to_string(TensorType type);
std::optional<TensorType> tensor_type_from(std::string_view name);
std::size_t size_of(TensorType type);
// Why it is not read as weights: "dtype I64 (only ...)"; empty for those that are.
std::string weight_type_problem(TensorType type);

struct TensorView {
  TensorType type{};
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  // valid as long as the file object; not aligned

  // As a matrix (first dimension, product of the others); a scalar is (1, 1), a vector (n, 1).
  std::int64_t rows() const;
  std::int64_t columns() const;
};

class SafetensorsFile {
 public:
  // Maps the file and checks the whole header: lengths, types, sizes, no holes, no overlaps.
  static SafetensorsFile open(const std::filesystem::path& path);

  SafetensorsFile(SafetensorsFile&&) noexcept = default;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept = default;

  const std::string& path() const { return path_; }
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return tensors_.count(name) > 0; }
  // Throws on unknown names, with the nearest one that exists.
  const TensorView& tensor(const std::string& name) const;

  // Rows [row_begin, row_end) and columns [column_begin, column_end) of F32, BF16 or F16 as f32;
  // out: (rows, columns) of the block, row-major.
  void read_f32_block(const std::string& name, std::int64_t row_begin, std::int64_t row_end,
                      std::int64_t column_begin, std::int64_t column_end,
                      std::span<float> out) const;

 private:
  struct Mapping;
  struct Unmap {
    void operator()(Mapping* mapping) const;
  };
  SafetensorsFile() = default;

  std::string path_;
  std::unique_ptr<Mapping, Unmap> mapping_;
  std::map<std::string, TensorView> tensors_;
};

// A model directory: model.safetensors, or the shards that model.safetensors.index.json lists.
class SafetensorsDir {
 public:
  static SafetensorsDir open(const std::filesystem::path& directory);

  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return file_of_.count(name) > 0; }
  const TensorView& tensor(const std::string& name) const { return file_of(name).tensor(name); }
  void read_f32_block(const std::string& name, std::int64_t row_begin, std::int64_t row_end,
                      std::int64_t column_begin, std::int64_t column_end,
                      std::span<float> out) const {
    file_of(name).read_f32_block(name, row_begin, row_end, column_begin, column_end, out);
  }

 private:
  const SafetensorsFile& file_of(const std::string& name) const;

  std::string path_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::size_t> file_of_;
};

}  // namespace taper
