// Modules of kind `clml`, in TVM's bytes: a symbol, a graph as JSON text, the names of its constants.
#include <bytes.h>
#include <tvm/ffi/cast.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "engine.h"
#include "graph.h"

namespace adreno_bench::clml {
namespace {

namespace refl = tvm::ffi::reflection;

std::string_view View(const ffi::String& text) { return {text.data(), text.size()}; }

class ClmlModule final : public ffi::ModuleObj {
 public:
  ClmlModule(const ffi::String& symbol, const ffi::String& json, const ffi::Array<ffi::String>& const_names)
      : symbol_(symbol), json_(json), const_names_(const_names), graph_(Graph::Parse(json, const_names)) {}

  const char* kind() const final { return "clml"; }
  int GetPropertyMask() const final { return ffi::Module::kBinarySerializable | ffi::Module::kRunnable; }
  ffi::String InspectSource(const ffi::String&) const final { return json_; }

  ffi::Bytes SaveToBytes() const final {
    Writer writer;
    writer.Text(View(symbol_));
    writer.Text(View(json_));
    writer.Number(const_names_.size());
    for (const ffi::String& name : const_names_) writer.Text(View(name));
    return ffi::Bytes(writer.Release());
  }

  ffi::Optional<ffi::Function> GetFunction(const ffi::String& name) final {
    if (name == "get_symbol") return ffi::Function::FromTyped([symbol = symbol_]() { return symbol; });
    if (name == "get_const_vars") return ffi::Function::FromTyped([names = const_names_]() { return names; });
    const auto self = ffi::GetObjectPtr<ClmlModule>(this);
    if (name == "__init_" + std::string(symbol_)) {
      return ffi::Function::FromTyped([self](const ffi::Array<tvm::runtime::Tensor>& constants) {
        self->Initialize(constants);
        return 0;
      });
    }
    if (name == symbol_) return ffi::Function::FromPacked([self](ffi::PackedArgs args, ffi::Any*) { self->Run(args); });
    return std::nullopt;
  }

 private:
  void Initialize(const ffi::Array<tvm::runtime::Tensor>& constants) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (engine_ == nullptr) engine_ = std::make_unique<Engine>(graph_, symbol_, constants);
  }

  void Run(ffi::PackedArgs args) {
    TVM_FFI_ICHECK(engine_ != nullptr) << "The module has not been initialized";
    engine_->Run(args);
  }

  ffi::String symbol_;
  ffi::String json_;
  ffi::Array<ffi::String> const_names_;
  Graph graph_;
  std::mutex mutex_;
  std::unique_ptr<const Engine> engine_;
};

ffi::Module Create(const ffi::String& symbol, const ffi::String& json, const ffi::Array<ffi::String>& const_names) {
  return ffi::Module(ffi::make_object<ClmlModule>(symbol, json, const_names));
}

ffi::Module Load(const ffi::Bytes& bytes) {
  Reader reader({bytes.data(), bytes.size()});
  std::string symbol, json, name;
  std::uint64_t count = 0;
  TVM_FFI_ICHECK(reader.Text(&symbol)) << "Loading symbol name failed";
  TVM_FFI_ICHECK(reader.Text(&json)) << "Loading graph json failed";
  bool whole = reader.Number(&count);
  ffi::Array<ffi::String> const_names;
  for (; whole && const_names.size() < count; const_names.push_back(name)) whole = reader.Text(&name);
  TVM_FFI_ICHECK(whole) << "Loading the const name list failed";
  return Create(symbol, json, const_names);
}

/// A TVM that was built with USE_CLML has both functions already, and its own are used.
template <typename F>
void DefineUnlessKnown(const char* name, F function) {
  if (!ffi::Function::GetGlobal(name)) refl::GlobalDef().def(name, function);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  DefineUnlessKnown("runtime.clml_runtime_create", Create);
  DefineUnlessKnown("ffi.Module.load_from_bytes.clml", Load);
  // tvm-ffi lets only C++ ask a module for its bytes.
  refl::GlobalDef().def("adreno_bench.module_bytes", [](const ffi::Module& module) { return module->SaveToBytes(); });
}

}  // namespace
}  // namespace adreno_bench::clml
