// What TVM's runtime decides once for the process: the driver's version, the three environment variables.
#pragma once

#include <optional>
#include <string>

namespace adreno_bench::clml {

struct Workspace {
  /// The version of OpenCL ML that the model claims: ADRENO_BENCH_CLML_VERSION, or else 4.0.
  std::string version;
  /// Recordable queue and on-chip memory: one variable switches both off.
  bool recordable_queue = true;
  bool tuning_run = false;
  std::optional<std::string> tuning_file;

  /// Read at the first call. Throws what TVM's runtime throws for a device or an environment that it cannot use, and
  /// then reads again at the next call.
  static const Workspace& Global();
  /// The workspace, if a module has needed it yet.
  static const Workspace* IfRead();

 private:
  Workspace();
};

}  // namespace adreno_bench::clml
