// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/Manifest.hpp"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "base/Checksum.hpp"
#include "base/Error.hpp"
#include "base/Packing.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "comm/GatherValues.hpp"
#include "io/Descriptor.hpp"
#include "io/Json.hpp"
#include "results/RunDirectory.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 2;

// A part of a file, named within the checkpoint.
struct FilePart {
  std::string file;
  std::int64_t begin = 0, bytes = 0;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.file, self.begin, self.bytes);
  }
};

// By file, of those that have one.
using FileProblems = std::vector<std::pair<std::string, std::string>>;

// An empty file has no part.
void add_parts(std::vector<FilePart>& parts, const std::string& file, std::int64_t bytes,
               std::int64_t part_bytes) {
  for (std::int64_t begin = 0; begin < bytes; begin += part_bytes)
    parts.push_back({file, begin, std::min(part_bytes, bytes - begin)});
}

// Throws Error if the part cannot be read to its end.
std::uint64_t checksum(const fs::path& path, const FilePart& part) {
  const detail::Descriptor file(path, O_RDONLY);
  std::vector<std::byte> buffer(1 << 20);
  Checksum64 sum;
  for (std::int64_t done = 0; done < part.bytes;) {
    const auto count = std::min<std::int64_t>(part.bytes - done, std::ssize(buffer));
    const auto bytes = std::span(buffer).first(static_cast<std::size_t>(count));
    file.read_at(part.begin + done, bytes);
    sum.add(bytes);
    done += count;
  }
  return sum.value();
}

// The checksums of the parts, each by one rank, on all ranks; what any rank could not read is added
// to the problems. The ranks meet every few parts: none waits long for the disk of another.
// Collective over `group`.
std::vector<std::uint64_t> shared_checksums(const fs::path& checkpoint,
                                            const std::vector<FilePart>& parts, const Group& group,
                                            FileProblems& problems) {
  constexpr std::size_t kPartsPerMeeting = 8;  // of a rank
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<std::int64_t> sums(parts.size());  // only the rank that reads a part adds to it
  FileProblems mine;
  for (std::size_t begin = 0; begin < parts.size(); begin += kPartsPerMeeting * ranks) {
    const std::size_t end = std::min(parts.size(), begin + kPartsPerMeeting * ranks);
    for (std::size_t i = begin + static_cast<std::size_t>(group.rank()); i < end; i += ranks) {
      try {
        sums[i] = static_cast<std::int64_t>(checksum(checkpoint / parts[i].file, parts[i]));
      } catch (const std::exception& error) {
        mine.emplace_back(parts[i].file, error.what());
      }
    }
    all_reduce_sum(group, std::span(sums).subspan(begin, end - begin));
  }
  for (auto& its_problems : all_gather_values(group, mine))
    for (auto& problem : its_problems) problems.push_back(std::move(problem));
  return {sums.begin(), sums.end()};
}

// What a manifest says, with the problems of files that can be seen without reading them.
struct Listed {
  std::vector<FilePart> parts;
  std::vector<std::uint64_t> checksums;
  FileProblems problems;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.parts, self.checksums, self.problems);
  }
};

void add_file(Listed& listed, const fs::path& checkpoint, const std::string& name,
              const Json& entry, std::int64_t part_bytes) {
  const fs::path path = checkpoint / name;
  const auto problem = [&](const std::string& what) {
    listed.problems.emplace_back(name, path_text(path) + " " + what);
  };
  const auto bytes = entry.at("bytes").get<std::int64_t>();
  // Those of earlier versions have one checksum of the whole file.
  const bool is_whole = entry.contains("checksum");
  const auto sums = is_whole ? std::vector{entry.at("checksum").get<std::uint64_t>()}
                             : entry.at("checksums").get<std::vector<std::uint64_t>>();
  if (!fs::exists(path)) return problem("is missing (the manifest lists it)");
  const auto there = static_cast<std::int64_t>(fs::file_size(path));
  if (there != bytes)
    return problem("has " + count_text(there, "byte") +
                   " (in the manifest: " + std::to_string(bytes) + "; it was cut off or changed)");
  std::vector<FilePart> parts;
  if (is_whole)
    parts.push_back({name, 0, bytes});
  else
    add_parts(parts, name, bytes, part_bytes);
  TAPER_VALIDATE(parts.size() == sums.size(), path_text(CheckpointDirectory(checkpoint).manifest())
                                                  << " does not have a checksum for each part of "
                                                  << name);
  listed.parts.insert(listed.parts.end(), parts.begin(), parts.end());
  listed.checksums.insert(listed.checksums.end(), sums.begin(), sums.end());
}

// What `find` throws becomes a problem of the file, or, without a name, of the manifest itself.
template <class Find>
void note_problem(Listed& listed, const fs::path& manifest, const std::string& file,
                  const Find& find) {
  try {
    find();
  } catch (const Json::exception& error) {
    listed.problems.emplace_back(file,
                                 path_text(manifest) + " is not a manifest (" + error.what() + ")");
  } catch (const std::exception& error) {
    listed.problems.emplace_back(file, error.what());
  }
}

Listed read_manifest(const fs::path& checkpoint) {
  const fs::path path = CheckpointDirectory(checkpoint).manifest();
  Listed listed;
  note_problem(listed, path, "", [&] {
    const Json manifest = read_json_file(path);
    const int version = manifest.value("version", kVersion);
    TAPER_VALIDATE(version <= kVersion, path_text(path)
                                            << " has version " << version << " (this Taper reads "
                                            << kVersion << "); use the one that wrote it");
    TAPER_VALIDATE(manifest.contains("files"), path_text(path) << " lists no files");
    const auto part_bytes = manifest.value("part_bytes", kManifestPartBytes);
    TAPER_VALIDATE(part_bytes > 0, path_text(path) << " has no positive part_bytes");
    for (const auto& [name, entry] : manifest["files"].items())
      note_problem(listed, path, name, [&, &name = name, &entry = entry] {
        add_file(listed, checkpoint, name, entry, part_bytes);
      });
  });
  return listed;
}

}  // namespace

std::vector<fs::path> write_manifest(const fs::path& checkpoint, std::int64_t iteration,
                                     const Group& group, std::int64_t part_bytes) {
  // Rank 0 lists them: others might see a shared folder in another state.
  std::vector<std::pair<std::string, std::int64_t>> files;
  std::string problem;
  if (group.rank() == 0) {
    try {
      for (const auto& entry : fs::recursive_directory_iterator(checkpoint))
        if (entry.is_regular_file())
          files.emplace_back(entry.path().lexically_relative(checkpoint).generic_string(),
                             static_cast<std::int64_t>(entry.file_size()));
      std::sort(files.begin(), files.end());
    } catch (const std::exception& error) {
      problem = error.what();
    }
  }
  const auto [names, why] = unpacked<std::pair<decltype(files), std::string>>(
      broadcast_string(group, packed(std::pair(files, problem)), 0));
  if (!why.empty()) TAPER_FAIL(ExitCode::kFailure, why);
  std::vector<FilePart> parts;
  for (const auto& [file, bytes] : names) add_parts(parts, file, bytes, part_bytes);
  FileProblems problems;
  const auto sums = shared_checksums(checkpoint, parts, group, problems);
  if (!problems.empty()) TAPER_FAIL(ExitCode::kFailure, problems.front().second);
  std::vector<fs::path> paths;
  for (const auto& [file, bytes] : names) paths.push_back(checkpoint / file);
  if (group.rank() != 0) return paths;
  OrderedJson manifest{{"format", "taper-checkpoint"},
                       {"version", kVersion},
                       {"iteration", iteration},
                       {"part_bytes", part_bytes}};
  for (const auto& [file, bytes] : names)
    manifest["files"][file] = {{"bytes", bytes}, {"checksums", OrderedJson::array()}};
  for (std::size_t i = 0; i < parts.size(); ++i)
    manifest["files"][parts[i].file]["checksums"].push_back(sums[i]);
  write_json_file(CheckpointDirectory(checkpoint).manifest(), manifest);
  return paths;
}

std::vector<std::string> manifest_problems(const fs::path& checkpoint, const Group& group) {
  std::string bytes;
  if (group.rank() == 0) bytes = packed(read_manifest(checkpoint));
  const auto listed = unpacked<Listed>(broadcast_string(group, bytes, 0));
  FileProblems problems = listed.problems;
  const auto sums = shared_checksums(checkpoint, listed.parts, group, problems);
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i] != listed.checksums[i])
      problems.emplace_back(listed.parts[i].file,
                            path_text(checkpoint / listed.parts[i].file) +
                                " is damaged (its checksum differs from the manifest)");
  // One for each file: the first that was found.
  std::map<std::string, std::string> by_file;
  for (auto& [file, problem] : problems) by_file.emplace(file, std::move(problem));
  std::vector<std::string> texts;
  for (auto& [file, problem] : by_file) texts.push_back(std::move(problem));
  return texts;
}

}  // namespace taper
