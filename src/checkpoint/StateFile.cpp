// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/StateFile.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>

#include "base/Bytes.hpp"
#include "base/Checksum.hpp"
#include "base/Error.hpp"
#include "base/Path.hpp"
#include "io/Descriptor.hpp"
#include "io/Hdf5File.hpp"
#include "kernels/copy.hpp"
#include "optim/Ownership.hpp"
#include "results/FileSchema.hpp"

namespace taper {
namespace {

constexpr std::array<const char*, 3> kKinds{"/master/", "/first/", "/second/"};

std::array<const float*, 3> state_of(const ShardedAdamW& optimizer) {
  return {optimizer.master().data(), optimizer.first_moment().data(),
          optimizer.second_moment().data()};
}

// The units of one tensor that this rank owns: always a contiguous range.
struct OwnedUnits {
  Range units;
  std::int64_t offset = 0;  // of the first one in the optimizer's arrays
};

std::vector<OwnedUnits> owned_units(const ParamTable& table, const ShardedAdamW& optimizer) {
  std::vector<OwnedUnits> list(table.tensors().size());
  for (const auto& piece : optimizer.owned()) {
    const int tensor = table.tensor_of_piece(piece.id), unit = piece.id - table.first_piece(tensor);
    OwnedUnits& owned = list[tensor];
    if (owned.units.empty()) owned = {{unit, unit}, piece.offset - optimizer.begin()};
    TAPER_ENSURE(owned.units.end == unit);
    owned.units.end = unit + 1;
  }
  return list;
}

// Of the units that this rank owns, those that it writes: the first of several owners does. Only
// units at the edge of a shard have several owners, so what remains is one range.
template <class FirstOwner>
Range written_units(Range owned, int rank, const FirstOwner& first_owner) {
  while (owned.begin < owned.end && first_owner(owned.begin) != rank) ++owned.begin;
  while (owned.begin < owned.end && first_owner(owned.end - 1) != rank) --owned.end;
  return owned.empty() ? Range{} : owned;
}

// Numbers as a text of the file; none of a file of an earlier version.
std::string text_of(const std::vector<std::int64_t>& words) {
  std::string text;
  for (const std::int64_t word : words) text += std::to_string(word) + " ";
  return text;
}

std::vector<std::int64_t> words_of(const Hdf5File& file, const std::string& dataset) {
  if (!file.exists(dataset)) return {};
  std::istringstream words(file.read_string(dataset));
  return {std::istream_iterator<std::int64_t>(words), {}};
}

// Bytes that consist of 8-byte integers.
std::vector<std::int64_t> words_in(std::string_view bytes) {
  std::vector<std::int64_t> words;
  for (ByteReader in(bytes); !in.done();) words.push_back(in.value<std::int64_t>());
  return words;
}

std::string bytes_of(const std::vector<std::int64_t>& words) {
  std::string bytes;
  ByteWriter out(bytes);
  for (const std::int64_t word : words) out.value(word);
  return bytes;
}

std::vector<std::int64_t> words_of(const std::optional<ExamplePosition>& examples) {
  if (!examples) return {};
  return {static_cast<std::int64_t>(examples->next),
          static_cast<std::int64_t>(examples->fingerprint)};
}

std::optional<ExamplePosition> read_examples(const Hdf5File& file) {
  const auto words = words_of(file, "/data");
  if (words.size() != 2) return std::nullopt;
  return ExamplePosition{
      file.has_attribute("/", "command") ? file.string_attribute("/", "command") : "",
      static_cast<std::uint64_t>(words[0]), static_cast<std::uint64_t>(words[1])};
}

std::vector<std::int64_t> words_of(const std::map<std::uint64_t, std::int64_t>& anchors) {
  std::vector<std::int64_t> words;
  for (const auto& [hash, ns] : anchors)
    words.insert(words.end(), {static_cast<std::int64_t>(hash), ns});
  return words;
}

std::map<std::uint64_t, std::int64_t> read_anchors(const Hdf5File& file) {
  const auto words = words_of(file, "/anchors");
  std::map<std::uint64_t, std::int64_t> anchors;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2)
    anchors[static_cast<std::uint64_t>(words[i])] = words[i + 1];
  return anchors;
}

std::string shape_of(const ModelConfig& c) {
  return std::string(to_string(c.family)) + " layers " + std::to_string(c.layers) + " hidden " +
         std::to_string(c.hidden) + " heads " + std::to_string(c.heads) + "/" +
         std::to_string(c.kv_heads) + " x " + std::to_string(c.head_dim) + " mlp " +
         std::to_string(c.intermediate) + " vocab " + std::to_string(c.vocab) +
         (c.has_scalar_head() ? " scalar head"
          : c.tied            ? " tied"
                              : "");
}

// Where the arrays of a tensor begin in the file, in bytes.
struct TensorPlaces {
  std::array<std::int64_t, 3> values;  // by kind
  std::int64_t hashes;
};

// Makes the file with all but the elements of these arrays. On one rank.
std::vector<TensorPlaces> lay_out_state(const std::filesystem::path& path, const ModelFiles& files,
                                        const RankGrid& layout, const StateInfo& info) {
  Hdf5File file = Hdf5File::create(path);
  write_format(file, state_schema());
  file.set_attribute("/", "model", shape_of(files.config));
  file.set_attribute("/", "layout", to_string(layout));
  file.set_attribute("/", "iteration", info.iteration);
  file.set_attribute("/", "optimizer_steps", info.optimizer_steps);
  file.set_attribute("/", "seed", static_cast<std::int64_t>(info.seed));
  if (info.kl_coef) file.set_attribute("/", "kl_coef", *info.kl_coef);
  if (info.prompt_batches) file.set_attribute("/", "prompt_batches", *info.prompt_batches);
  if (!info.rounds.empty()) file.write_string("/rounds", text_of(words_in(info.rounds)));
  file.write_string("/config", info.config);
  file.write_string("/planner", text_of(words_in(info.planner)));
  file.write_string("/data", text_of(words_of(info.examples)));
  if (info.examples && !info.examples->command.empty())
    file.set_attribute("/", "command", info.examples->command);
  if (!info.anchors.empty()) file.write_string("/anchors", text_of(words_of(info.anchors)));
  std::vector<TensorPlaces> places;
  for (const ParamTensor& tensor : files.table.tensors()) {
    TensorPlaces& place = places.emplace_back();
    for (std::size_t k = 0; k < kKinds.size(); ++k)
      place.values[k] =
          file.reserve<float>(kKinds[k] + tensor.name, {tensor.units, tensor.unit_size()});
    place.hashes = file.reserve<std::uint64_t>("/hash/" + tensor.name, {tensor.units, 3});
  }
  file.close();
  detail::Descriptor whole(path, O_WRONLY);
  whole.reserve(whole.size());
  whole.close();
  return places;
}

}  // namespace

// One rank lays the file out and the others write at the places that it tells: collective HDF5
// takes several collective calls for each array, which is slow where ranks share cores.
void write_state(const std::filesystem::path& path, const ModelFiles& files,
                 const TrainingModel& model, const StateInfo& info) {
  const Ranks& ranks = model.ranks();
  const ParamTable& table = files.table;
  const auto owned = owned_units(table, model.optimizer());
  const auto state = state_of(model.optimizer());
  const Ownership owners = owned_pieces(table, ranks.chain, {0, model.layout()});
  const auto places =
      from_rank_0(ranks, [&] { return lay_out_state(path, files, model.layout(), info); });
  detail::Descriptor file(path, O_WRONLY);
  std::vector<float> buffer;
  for (std::size_t t = 0; t < owned.size(); ++t) {
    ranks.progress.set_step(static_cast<std::int64_t>(t));
    const std::int64_t unit = table.tensors()[t].unit_size();
    const Range written = written_units(owned[t].units, ranks.rank(), [&](int unit) {
      return owners[table.first_piece(static_cast<int>(t)) + unit].front();
    });
    const std::int64_t mine = written.size(), begin = written.begin;
    if (mine == 0) continue;
    const std::int64_t skipped = (begin - owned[t].units.begin) * unit;
    std::vector<std::uint64_t> hashes(static_cast<std::size_t>(mine * 3));
    for (std::size_t k = 0; k < kKinds.size(); ++k) {
      const std::span<const float> values =
          host_values(ranks.exec,
                      ConstFloatVector(state[k] + owned[t].offset + skipped,
                                       static_cast<std::size_t>(mine * unit)),
                      buffer);
      file.write_at(places[t].values[k] + begin * unit * std::int64_t{sizeof(float)},
                    std::as_bytes(values));
      for (std::int64_t u = 0; u < mine; ++u)
        hashes[u * 3 + k] = checksum_of(values.subspan(u * unit, unit));
    }
    file.write_at(places[t].hashes + begin * 3 * std::int64_t{sizeof(std::uint64_t)},
                  std::as_bytes(std::span<const std::uint64_t>(hashes)));
  }
  file.sync();
  file.close();
}

namespace {

// Throws Error if the file is no state of this model.
StateInfo read_head(const Hdf5File& file, const std::filesystem::path& path,
                    const ModelFiles& files) {
  require_format(file, state_schema());
  TAPER_VALIDATE(file.string_attribute("/", "model") == shape_of(files.config),
                 path_text(path) << " belongs to another model ("
                                 << file.string_attribute("/", "model") << ", not "
                                 << shape_of(files.config) << ")");
  return {file.int_attribute("/", "iteration"),
          file.int_attribute("/", "optimizer_steps"),
          static_cast<std::uint64_t>(file.int_attribute("/", "seed")),
          file.read_string("/config"),
          bytes_of(words_of(file, file.exists("/planner") ? "/planner" : "/policy")),
          read_examples(file),
          file.has_attribute("/", "kl_coef") ? std::optional(file.double_attribute("/", "kl_coef"))
                                             : std::nullopt,
          file.has_attribute("/", "prompt_batches")
              ? std::optional(file.int_attribute("/", "prompt_batches"))
              : std::nullopt,
          bytes_of(words_of(file, "/rounds")),
          read_anchors(file),
          file.has_attribute("/", "layout") ? file.string_attribute("/", "layout") : ""};
}

}  // namespace

StateInfo read_state_info(const std::filesystem::path& path, const ModelFiles& files) {
  return read_head(Hdf5File::open_read(path), path, files);
}

StateInfo read_state(const std::filesystem::path& path, const ModelFiles& files,
                     TrainingModel& model) {
  const Hdf5File file = Hdf5File::open_read(path);
  StateInfo info = read_head(file, path, files);
  auto& optimizer = model.optimizer();
  const std::array<float*, 3> state{optimizer.master().data(), optimizer.first_moment().data(),
                                    optimizer.second_moment().data()};
  const auto owned = owned_units(files.table, optimizer);
  for (std::size_t t = 0; t < owned.size(); ++t) {
    if (owned[t].units.empty()) continue;
    const ParamTensor& tensor = files.table.tensors()[t];
    const std::int64_t unit = tensor.unit_size(), mine = owned[t].units.size(),
                       begin = owned[t].units.begin;
    const auto hashes =
        file.read_slab<std::uint64_t>("/hash/" + tensor.name, {begin, 0}, {mine, 3});
    for (std::size_t k = 0; k < kKinds.size(); ++k) {
      const auto values = file.read_slab<float>(kKinds[k] + tensor.name, {begin, 0}, {mine, unit});
      for (std::int64_t u = 0; u < mine; ++u)
        TAPER_VALIDATE(checksum_of(std::span<const float>(values).subspan(u * unit, unit)) ==
                           hashes[u * 3 + k],
                       path_text(path) << ": unit " << begin + u << " of '" << kKinds[k] + 1
                                       << tensor.name << "' is damaged (its checksum differs)");
      copy_from_host(model.exec(), FloatVector(state[k] + owned[t].offset, values.size()), values);
    }
  }
  optimizer.set_steps(info.optimizer_steps);
  return info;
}

std::vector<std::string> state_damage(const std::filesystem::path& path) {
  const Hdf5File file = Hdf5File::open_read(path);
  std::vector<std::string> damage;
  for (const std::string& dataset : file.datasets("/hash")) {
    const std::string tensor = dataset.substr(std::string("/hash/").size());
    const Dims dims = file.dims(dataset);
    const auto hashes = file.read<std::uint64_t>(dataset).values;
    for (std::size_t k = 0; k < kKinds.size(); ++k) {
      const std::string name = kKinds[k] + tensor;
      const std::int64_t unit = file.dims(name).at(1);
      for (std::int64_t u = 0; u < dims.at(0); ++u) {
        const auto values = file.read_slab<float>(name, {u, 0}, {1, unit});
        if (checksum_of(std::span<const float>(values)) == hashes.at(u * 3 + k)) continue;
        damage.push_back(name + ": unit " + std::to_string(u) +
                         " is damaged (its checksum differs)");
        break;  // one line a dataset
      }
    }
  }
  return damage;
}

}  // namespace taper
