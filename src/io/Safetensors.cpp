// SPDX-License-Identifier: Apache-2.0
#include "io/Safetensors.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/Bf16.hpp"
#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "io/Descriptor.hpp"
#include "io/detail/HalfFloat.hpp"
#include "io/detail/SafetensorsHeader.hpp"

namespace taper {

static_assert(std::endian::native == std::endian::little,
              "safetensors data are little-endian and are not swapped");

namespace {

struct TypeRow {
  TensorType type;
  const char* name;
  std::size_t size;
};

constexpr std::array<TypeRow, 15> kTypes = {{{TensorType::kBool, "BOOL", 1},
                                             {TensorType::kU8, "U8", 1},
                                             {TensorType::kI8, "I8", 1},
                                             {TensorType::kF8E4M3, "F8_E4M3", 1},
                                             {TensorType::kF8E5M2, "F8_E5M2", 1},
                                             {TensorType::kU16, "U16", 2},
                                             {TensorType::kI16, "I16", 2},
                                             {TensorType::kF16, "F16", 2},
                                             {TensorType::kBf16, "BF16", 2},
                                             {TensorType::kU32, "U32", 4},
                                             {TensorType::kI32, "I32", 4},
                                             {TensorType::kF32, "F32", 4},
                                             {TensorType::kU64, "U64", 8},
                                             {TensorType::kI64, "I64", 8},
                                             {TensorType::kF64, "F64", 8}}};

float float_from_bf16(std::uint16_t bits) {
  return to_float(bf16{bits});
}

template <float (*widen)(std::uint16_t)>
void widen_all(const std::byte* from, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, from + 2 * i, sizeof bits);
    out[i] = widen(bits);
  }
}

void convert(TensorType type, const std::byte* from, std::span<float> out) {
  if (type == TensorType::kF32) {
    if (!out.empty()) std::memcpy(out.data(), from, out.size_bytes());
  } else if (type == TensorType::kBf16) {
    widen_all<float_from_bf16>(from, out);
  } else {
    widen_all<detail::float_from_f16>(from, out);
  }
}

}  // namespace

const char* to_string(TensorType type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}
std::size_t size_of(TensorType type) {
  return kTypes[static_cast<std::size_t>(type)].size;
}

std::string weight_type_problem(TensorType type) {
  if (type == TensorType::kF32 || type == TensorType::kBf16 || type == TensorType::kF16) return {};
  return std::string("dtype ") + to_string(type) + " (only F32, BF16 and F16 weights are read)";
}

std::optional<TensorType> tensor_type_from(std::string_view name) {
  for (const auto& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

std::int64_t TensorView::rows() const {
  return shape.empty() ? 1 : shape.front();
}

std::int64_t TensorView::columns() const {
  std::int64_t count = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) count *= shape[i];
  return count;
}

struct SafetensorsFile::Mapping {
  std::span<std::byte> bytes;
};

void SafetensorsFile::Unmap::operator()(Mapping* mapping) const {
  ::munmap(mapping->bytes.data(), mapping->bytes.size());
  delete mapping;
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  SafetensorsFile file;
  file.path_ = path.string();
  TAPER_VALIDATE(std::filesystem::is_regular_file(path),
                 path_text(path) << " cannot be read (no such file); " << path_advice(path));
  const detail::Descriptor descriptor(path, O_RDONLY);
  const auto size = static_cast<std::size_t>(descriptor.size());
  TAPER_VALIDATE(size >= detail::kSafetensorsPrefix, path_text(path)
                                                         << " is not a safetensors file (only "
                                                         << size << " bytes); copy it again");
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.fd(), 0);
  if (start == MAP_FAILED) detail::throw_errno("map", path, errno);
  file.mapping_.reset(new Mapping{{static_cast<std::byte*>(start), size}});
  file.tensors_ = detail::parse_safetensors_header(path_text(path), file.mapping_->bytes);
  return file;
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> found;
  for (const auto& [name, tensor] : tensors_) found.push_back(name);
  return found;
}

const TensorView& SafetensorsFile::tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  const std::string close = nearest(name, names());
  TAPER_FAIL(ExitCode::kBadInput, path_text(path_)
                                      << " has no tensor " << name
                                      << (close.empty() ? "" : " (did you mean " + close + "?)"));
}

void SafetensorsFile::read_f32_block(const std::string& name, std::int64_t row_begin,
                                     std::int64_t row_end, std::int64_t column_begin,
                                     std::int64_t column_end, std::span<float> out) const {
  const TensorView& view = tensor(name);
  const std::string problem = weight_type_problem(view.type);
  TAPER_VALIDATE(problem.empty(), path_text(path_) << ": tensor " << name << " has " << problem
                                                   << "; convert the model first");
  const auto columns = view.columns();
  TAPER_INSIST(0 <= row_begin && row_begin <= row_end && row_end <= view.rows() &&
                   0 <= column_begin && column_begin <= column_end && column_end <= columns,
               path_text(path_) << ": tensor " << name << " is " << view.rows() << " x " << columns
                                << " (rows " << row_begin << " to " << row_end << ", columns "
                                << column_begin << " to " << column_end << " asked for)");
  const auto width = static_cast<std::size_t>(column_end - column_begin);
  TAPER_INSIST(out.size() == static_cast<std::size_t>(row_end - row_begin) * width,
               path_text(path_) << ": tensor " << name << ": the block does not fill the buffer of "
                                << out.size());
  const auto element = size_of(view.type);
  if (column_begin == 0 && column_end == columns) {
    convert(view.type, view.bytes.data() + static_cast<std::size_t>(row_begin * columns) * element,
            out);
    return;
  }
  for (auto row = row_begin; row < row_end; ++row) {
    const auto start = static_cast<std::size_t>(row * columns + column_begin) * element;
    convert(view.type, view.bytes.data() + start,
            out.subspan(static_cast<std::size_t>(row - row_begin) * width, width));
  }
}

}  // namespace taper
