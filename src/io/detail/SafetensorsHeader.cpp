// SPDX-License-Identifier: Apache-2.0
#include "io/detail/SafetensorsHeader.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "base/Error.hpp"
#include "io/Json.hpp"

namespace taper::detail {

namespace {

struct Entry {
  std::string name;
  TensorType type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin, end;  // within the data
};

bool is_count(const Json& value) {
  return value.is_number_unsigned();
}

bool is_list_of_counts(const Json& entry, const char* key) {
  return entry.contains(key) && entry[key].is_array() &&
         std::all_of(entry[key].begin(), entry[key].end(), is_count);
}

Entry parse_entry(const std::string& where, const std::string& name, const Json& entry) {
  TAPER_VALIDATE(
      entry.is_object() && entry.contains("dtype") && entry["dtype"].is_string() &&
          is_list_of_counts(entry, "shape") && is_list_of_counts(entry, "data_offsets") &&
          entry["data_offsets"].size() == 2,
      where << " is not described by dtype, shape and two data_offsets (damaged header?)");
  const auto type_name = entry["dtype"].get<std::string>();
  const auto type = tensor_type_from(type_name);
  TAPER_VALIDATE(type.has_value(),
                 where << " has unknown dtype " << type_name << " (convert the model first)");
  Entry result{name,
               *type,
               {},
               entry["data_offsets"][0].get<std::uint64_t>(),
               entry["data_offsets"][1].get<std::uint64_t>()};
  for (const auto& size : entry["shape"]) {
    const auto extent = size.get<std::uint64_t>();
    TAPER_VALIDATE(extent <= static_cast<std::uint64_t>(INT64_MAX),
                   where << " has an impossible shape");
    result.shape.push_back(static_cast<std::int64_t>(extent));
  }
  const auto bytes = tensor_bytes(where, *type, result.shape);
  TAPER_VALIDATE(result.begin <= result.end && result.end - result.begin == bytes,
                 where << " has data_offsets " << result.begin << " to " << result.end
                       << " (its shape needs " << bytes << " bytes)");
  return result;
}

// JSON objects may repeat a key; the library would silently keep one of them.
Json parse_unique(const std::string& path, std::string_view text) {
  std::set<std::string> seen;
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key && depth == 1) {
      TAPER_VALIDATE(
          seen.insert(value.get<std::string>()).second,
          path << ": tensor " << value.get<std::string>() << " appears twice in the header");
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const nlohmann::json::exception& error) {
    TAPER_FAIL(ExitCode::kBadInput,
               path << " has no valid header (" << error.what() << ") is it a safetensors file?");
  }
}

void check_metadata(const std::string& path, const Json& entry) {
  TAPER_VALIDATE(entry.is_object(), path << ": __metadata__ is not an object");
  for (const auto& [key, value] : entry.items()) {
    TAPER_VALIDATE(value.is_string(), path << ": __metadata__ entry " << key << " is not a string");
  }
}

// Tensors tile the data: none beyond the end, no holes, no overlaps.
void check_tiling(const std::string& path, std::vector<Entry>& entries, std::uint64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t expected = 0;
  for (const auto& entry : entries) {
    TAPER_VALIDATE(entry.end <= data_bytes, path << ": tensor " << entry.name << " ends at byte "
                                                 << entry.end << " of the data (there are "
                                                 << data_bytes
                                                 << "); the file is truncated, copy it again");
    TAPER_VALIDATE(entry.begin == expected,
                   path << ": tensor " << entry.name << " begins at byte " << entry.begin
                        << " of the data (the one before ends at " << expected << ": tensors "
                        << (entry.begin < expected ? "overlap" : "leave a hole") << ")");
    expected = entry.end;
  }
  TAPER_VALIDATE(expected == data_bytes, path << " has " << data_bytes - expected
                                              << " bytes after its last tensor (damaged header?)");
}

}  // namespace

std::size_t tensor_bytes(const std::string& where, TensorType type,
                         const std::vector<std::int64_t>& shape) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(type));
  for (const auto extent : shape) {
    TAPER_VALIDATE(extent >= 0 && !__builtin_mul_overflow(bytes, extent, &bytes),
                   where << " has an impossible shape");
  }
  return static_cast<std::size_t>(bytes);
}

std::map<std::string, TensorView> parse_safetensors_header(const std::string& path,
                                                           std::span<const std::byte> file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), kSafetensorsPrefix);
  TAPER_VALIDATE(
      length <= kMostHeaderBytes,
      path << " is not a safetensors file (its header would have " << length << " bytes)");
  TAPER_VALIDATE(length <= file.size() - kSafetensorsPrefix,
                 path << " is truncated (its header has " << length << " bytes, the file "
                      << file.size() << "); copy it again");
  const auto data = file.subspan(kSafetensorsPrefix + length);
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kSafetensorsPrefix,
                              length);
  const Json json = parse_unique(path, text);
  TAPER_VALIDATE(json.is_object(),
                 path << " has no valid header (not a JSON object) is it a safetensors file?");

  std::map<std::string, TensorView> tensors;
  std::vector<Entry> entries;
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") {
      check_metadata(path, entry);
    } else {
      entries.push_back(parse_entry(path + ": tensor " + name, name, entry));
    }
  }
  check_tiling(path, entries, data.size());
  for (auto& entry : entries) {
    tensors[entry.name] = {entry.type, std::move(entry.shape),
                           data.subspan(entry.begin, entry.end - entry.begin)};
  }
  return tensors;
}

}  // namespace taper::detail
