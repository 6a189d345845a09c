#include "workspace.h"

#include <tvm/ffi/error.h>
#include <tvm/runtime/logging.h>

#include <atomic>
#include <cstdlib>

namespace adreno_bench::clml {
namespace {

constexpr char kVersionVariable[] = "ADRENO_BENCH_CLML_VERSION";
constexpr char kDefaultVersion[] = "4.0";
/// In place of a version: a device without the extension.
constexpr char kNoExtension[] = "none";

std::atomic<const Workspace*> read_workspace{nullptr};

}  // namespace

Workspace::Workspace() {
  const char* claimed = std::getenv(kVersionVariable);
  version = claimed == nullptr ? kDefaultVersion : claimed;
  if (version == kNoExtension) {
    TVM_FFI_THROW(InternalError) << "CLML Runtime Init: Qualcomm extn not present.\n";
  }
  recordable_queue = std::getenv("CLML_DISABLE_RECORDABLE_QUEUE") == nullptr;
  LOG(WARNING) << "CLML Target Version:" << version;
  LOG(WARNING) << "CLML is emulated by adreno-bench: its results can be trusted as far as docs/explanation/clml.md says, its "
                  "time means nothing";
  const char* tune = std::getenv("CLML_IS_TUNING_RUN");
  tuning_run = tune != nullptr && std::stoi(tune) != 0;
  const char* file = std::getenv("CLML_TUNING_CACHE");
  if (file != nullptr) tuning_file = file;
  tuning_run = tuning_run && tuning_file;
}

const Workspace& Workspace::Global() {
  static const Workspace* workspace = new Workspace();
  read_workspace = workspace;
  return *workspace;
}

const Workspace* Workspace::IfRead() { return read_workspace; }

}  // namespace adreno_bench::clml
