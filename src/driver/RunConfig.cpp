// SPDX-License-Identifier: Apache-2.0
#include "driver/RunConfig.hpp"

#include <string>

#include "driver/Options_params.hpp"
#include "io/Hdf5File.hpp"
#include "param/ParamFile.hpp"

namespace taper {

RunOptions read_run_options(const std::filesystem::path& run_file) {
  RunOptions options;
  param::Schema schema;
  describe(schema, options);
  const std::string config = Hdf5File::open_read(run_file).read_string("/config");
  (void)schema.read_and_list_problems(param::ParamFile::parse(config, run_file.string() + ".yaml"));
  return options;
}

}  // namespace taper
