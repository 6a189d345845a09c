#include "counts.h"

#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <map>
#include <mutex>

#include "workspace.h"

namespace adreno_bench::clml {
namespace {

namespace ffi = tvm::ffi;

std::mutex mutex;
std::map<std::string, Counts> by_symbol;

ffi::json::Object Describe(const Counts& counts) {
  ffi::json::Object object;
  object.Set(ffi::String("hits"), counts.hits);
  object.Set(ffi::String("misses"), counts.misses);
  object.Set(ffi::String("saved"), counts.saved);
  object.Set(ffi::String("tunable"), counts.tunable);
  object.Set(ffi::String("tuned"), counts.tuned);
  return object;
}

/// JSON: the switches once they are read, and what happened to each symbol.
ffi::String Info() {
  ffi::json::Object info;
  info.Set(ffi::String("emulated"), true);
  if (const Workspace* workspace = Workspace::IfRead()) {
    info.Set(ffi::String("version"), ffi::String(workspace->version));
    info.Set(ffi::String("recordable_queue"), workspace->recordable_queue);
    info.Set(ffi::String("tuning_run"), workspace->tuning_run);
    if (workspace->tuning_file) info.Set(ffi::String("tuning_cache"), ffi::String(*workspace->tuning_file));
  }
  ffi::json::Object symbols;
  std::lock_guard<std::mutex> guard(mutex);
  for (const auto& [symbol, counts] : by_symbol) symbols.Set(ffi::String(symbol), Describe(counts));
  info.Set(ffi::String("symbols"), symbols);
  return ffi::json::Stringify(info);
}

TVM_FFI_STATIC_INIT_BLOCK() { ffi::reflection::GlobalDef().def("adreno_bench.clml_info", Info); }

}  // namespace

void Count(const std::string& symbol, std::int64_t Counts::*what) {
  std::lock_guard<std::mutex> guard(mutex);
  ++(by_symbol[symbol].*what);
}

}  // namespace adreno_bench::clml
