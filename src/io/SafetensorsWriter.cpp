// SPDX-License-Identifier: Apache-2.0
#include "io/SafetensorsWriter.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "io/Json.hpp"
#include "io/detail/SafetensorsHeader.hpp"

namespace taper {

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<TensorSpec> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : file_(path) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorSpec& a, const TensorSpec& b) {
    return size_of(a.type) > size_of(b.type);
  });
  OrderedJson header = OrderedJson::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::int64_t offset = 0;
  for (auto& spec : tensors) {
    const std::string where = path_text(path) + ": tensor " + spec.name;
    TAPER_VALIDATE(spec.name != "__metadata__" && !header.contains(spec.name),
                   where << " is declared twice (or reserved)");
    const auto bytes =
        static_cast<std::int64_t>(detail::tensor_bytes(where, spec.type, spec.shape));
    header[spec.name] = {{"dtype", to_string(spec.type)},
                         {"shape", spec.shape},
                         {"data_offsets", {offset, offset + bytes}}};
    slots_[spec.name] = {spec, offset, bytes, 0};
    offset += bytes;
  }
  // Padded with blanks, so that the data begin at a multiple of 8.
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  TAPER_VALIDATE(text.size() <= detail::kMostHeaderBytes,
                 path_text(path) << " would have a header of " << text.size()
                                 << " bytes (too many tensors) split it");
  const auto start = static_cast<std::int64_t>(detail::kSafetensorsPrefix + text.size());
  for (auto& [name, slot] : slots_) slot.begin += start;
  file_.descriptor().reserve(start + offset);
  const std::uint64_t length = text.size();
  file_.write(std::as_bytes(std::span(&length, 1)));
  file_.write(text);
}

SafetensorsWriter::Slot& SafetensorsWriter::slot(const std::string& name) {
  const auto found = slots_.find(name);
  TAPER_INSIST(found != slots_.end(), path_text(file_.path())
                                          << ": tensor " << name << " was not declared");
  return found->second;
}

void SafetensorsWriter::put(Slot& slot, std::int64_t offset, std::span<const std::byte> bytes) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  TAPER_INSIST(offset >= 0 && offset + size <= slot.bytes,
               path_text(file_.path())
                   << ": tensor " << slot.spec.name << " has " << slot.bytes << " bytes (bytes "
                   << offset << " to " << offset + size << " written)");
  file_.descriptor().write_at(slot.begin + offset, bytes);
  slot.written += size;
}

void SafetensorsWriter::put_floats(Slot& slot, std::int64_t first_element,
                                   std::span<const float> values) {
  if (slot.spec.type == TensorType::kF32) {
    put(slot, first_element * 4, std::as_bytes(values));
    return;
  }
  // In pieces, so that the scratch stays in cache.
  constexpr std::size_t kPiece = 64 * 1024;
  while (!values.empty()) {
    const auto piece = values.first(std::min(kPiece, values.size()));
    rounded_.resize(piece.size());
    std::transform(piece.begin(), piece.end(), rounded_.begin(), to_bf16);
    put(slot, first_element * 2, std::as_bytes(std::span(rounded_)));
    first_element += static_cast<std::int64_t>(piece.size());
    values = values.subspan(piece.size());
  }
}

void SafetensorsWriter::write_block(const std::string& name, std::int64_t row_begin,
                                    std::int64_t row_end, std::int64_t column_begin,
                                    std::int64_t column_end, std::span<const float> values) {
  Slot& target = slot(name);
  const TensorView shape{target.spec.type, target.spec.shape, {}};
  const auto columns = shape.columns();
  TAPER_INSIST(shape.type == TensorType::kF32 || shape.type == TensorType::kBf16,
               path_text(file_.path())
                   << ": tensor " << name << " has dtype " << to_string(shape.type)
                   << " (floats are written as F32 or BF16 only)");
  const auto width = column_end - column_begin;
  TAPER_INSIST(0 <= row_begin && row_begin <= row_end && row_end <= shape.rows() &&
                   0 <= column_begin && width >= 0 && column_end <= columns &&
                   static_cast<std::int64_t>(values.size()) == (row_end - row_begin) * width,
               path_text(file_.path())
                   << ": tensor " << name << " is " << shape.rows() << " x " << columns << " (rows "
                   << row_begin << " to " << row_end << ", columns " << column_begin << " to "
                   << column_end << " do not fit it, or not the " << values.size() << " values)");
  if (width == columns) {
    put_floats(target, row_begin * columns, values);
    return;
  }
  for (auto row = row_begin; row < row_end; ++row) {
    const auto from = static_cast<std::size_t>((row - row_begin) * width);
    put_floats(target, row * columns + column_begin,
               values.subspan(from, static_cast<std::size_t>(width)));
  }
}

void SafetensorsWriter::commit() {
  for (const auto& [name, slot] : slots_) {
    TAPER_INSIST(slot.written == slot.bytes, path_text(file_.path())
                                                 << ": tensor " << name << " got " << slot.written
                                                 << " of its " << slot.bytes << " bytes");
  }
  file_.commit();
}

}  // namespace taper
