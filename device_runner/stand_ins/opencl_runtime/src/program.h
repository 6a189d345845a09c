// Kernels of one module: source, lazily built programs, binaries.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "cl.h"

namespace adreno_bench {

class Device;

/// The OpenCL C of every kernel of a module. All are compiled as one program when the first is needed on a device, which
/// saves PoCL a tenth of a second for each: it reads OpenCL's builtins once. Each is a program of its own if that does
/// not compile, so that the one at fault is named, and for binaries, as TVM loads and saves them.
class Programs {
 public:
  /// Splits what TVM's code generator writes: each kernel begins with a line `// Function: <name>`.
  explicit Programs(std::string_view source);

  std::size_t size() const { return sources_.size(); }

  /// A new kernel object. Throws InternalError "OpenCL build error" with the build log if its program does not compile;
  /// such a program is not compiled again.
  Kernel Create(Device& device, const std::string& name);

  /// Every kernel's binary for this device, building what is not built yet, in TVM's format:
  /// count, then (name, binary) each.
  std::string SaveBinaries(Device& device);

  /// Loads what `SaveBinaries` wrote; kernels already built are left as they are. Throws if the data is damaged, or if
  /// the driver refuses a binary: those before it are loaded then.
  void LoadBinaries(Device& device, std::string_view bytes);

 private:
  using Key = std::pair<int, std::string>;  // device index, kernel

  cl_program Get(Device& device, const std::string& name);
  cl_program GetAlone(Device& device, const std::string& name);

  std::map<std::string, std::string> sources_;
  std::mutex mutex_;
  std::map<Key, Program> built_;
  std::map<int, Program> whole_;  // by device index; empty if it does not compile
};

}  // namespace adreno_bench
