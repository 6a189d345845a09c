// Modules of kind `opencl`: what the compiler wrote, and its kernels as functions.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device.h"
#include "fault.h"
#include "memory.h"
#include "program.h"
#include "reader.h"

namespace adreno_bench {
namespace {

namespace ffi = tvm::ffi;
namespace refl = tvm::ffi::reflection;

/// How to call one kernel: its arguments come first, then one extent for each launch tag.
struct Signature {
  std::vector<DLDataType> arg_types;
  std::vector<std::string> launch_tags;
};

/// TVM's FunctionInfo: name, argument types, launch tags, extra tags (of tensor maps, which OpenCL does not have).
Signature ReadSignature(WholeReader& reader) {
  Signature signature;
  reader.String();
  for (auto left = reader.Count(4); left > 0; --left) {
    DLDataType type;
    type.code = reader.Number<std::uint8_t>();
    type.bits = reader.Number<std::uint8_t>();
    type.lanes = reader.Number<std::uint16_t>();
    signature.arg_types.push_back(type);
  }
  for (auto left = reader.Count(8); left > 0; --left) signature.launch_tags.push_back(reader.String());
  for (auto left = reader.Count(4); left > 0; --left) reader.Number<std::int32_t>();
  return signature;
}

/// Where a launch tag's extent goes: 0-2 are the grid's sides, 3-5 the group's; none of tags that ask for what OpenCL
/// does not have and that have no extent. Throws InternalError for others.
std::optional<std::size_t> ExtentSlot(const std::string& tag) {
  if (tag.compare(0, 9, "tirx.use_") == 0) return std::nullopt;
  for (const auto& [prefix, base] : {std::pair<std::string, std::size_t>("blockIdx.", 0), {"threadIdx.", 3}}) {
    if (tag.size() == prefix.size() + 1 && tag.compare(0, prefix.size(), prefix) == 0) {
      const std::size_t axis = static_cast<std::size_t>(tag.back() - 'x');
      if (axis < 3) return base + axis;
    }
  }
  TVM_FFI_THROW(InternalError) << "Unknown threadscope " << tag;
  TVM_FFI_UNREACHABLE();
}

/// Throws InternalError, in TVM's words, for what TVM does not pass to kernels.
void RequirePassable(DLDataType type) {
  TVM_FFI_ICHECK_EQ(type.lanes, 1U);
  if (type.code == kDLOpaqueHandle) return;
  TVM_FFI_ICHECK_EQ(type.bits % 8, 0U);
  const bool word = type.bits == 32, twice = type.bits == 64;
  const bool signed_or_float = type.code == kDLInt || type.code == kDLFloat;
  if ((signed_or_float && (word || twice)) || (type.code == kDLUInt && word)) return;
  TVM_FFI_THROW(InternalError) << "Cannot handle " << ffi::DLDataTypeToString(type) << " as device function argument";
}

Memory* MemoryOf(const TVMFFIAny& arg) {
  switch (arg.type_index) {
    case TVMFFITypeIndex::kTVMFFIOpaquePtr:
      return static_cast<Memory*>(arg.v_ptr);
    case TVMFFITypeIndex::kTVMFFINone:
      return nullptr;
    default:
      TVM_FFI_THROW(TypeError) << "OpenCL: a kernel argument should be a pointer";
      TVM_FFI_UNREACHABLE();
  }
}

std::int64_t IntegerOf(const TVMFFIAny& arg) {
  if (arg.type_index != TVMFFITypeIndex::kTVMFFIInt && arg.type_index != TVMFFITypeIndex::kTVMFFIBool) {
    TVM_FFI_THROW(TypeError) << "OpenCL: a kernel argument or extent should be an integer";
  }
  return arg.v_int64;
}

double NumberOf(const TVMFFIAny& arg) {
  return arg.type_index == TVMFFITypeIndex::kTVMFFIFloat ? arg.v_float64 : static_cast<double>(IntegerOf(arg));
}

/// One kernel of a module, callable from any thread on any device.
class Launcher {
 public:
  Launcher(std::shared_ptr<Programs> programs, std::string name, Signature signature)
      : programs_(std::move(programs)),
        name_(std::move(name)),
        signature_(std::move(signature)),
        fault_(Fault::Of(name_)) {}

  /// Reads the signature, which TVM does when a kernel is looked up. Throws InternalError for what cannot be passed.
  void Bind() {
    for (const DLDataType& type : signature_.arg_types) RequirePassable(type);
    std::lock_guard<std::mutex> guard(mutex_);
    slots_.clear();
    for (const std::string& tag : signature_.launch_tags) {
      if (const auto slot = ExtentSlot(tag)) slots_.push_back(*slot);
    }
    for (const std::size_t slot : slots_) dimensions_ = std::max<cl_uint>(dimensions_, slot % 3 + 1);
  }

  void operator()(ffi::PackedArgs args) {
    if (static_cast<std::size_t>(args.size()) < signature_.arg_types.size() + slots_.size()) {
      TVM_FFI_THROW(TypeError) << "OpenCL: kernel '" << name_ << "' takes " << signature_.arg_types.size() << " arguments and "
                               << slots_.size() << " extents, not " << args.size() << " in all";
    }
    std::array<std::size_t, 6> extent{1, 1, 1, 1, 1, 1};
    const auto* raw = reinterpret_cast<const TVMFFIAny*>(args.data());
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const std::int64_t value = IntegerOf(raw[signature_.arg_types.size() + i]);
      if (value != 0) extent[slots_[i]] = static_cast<std::size_t>(value);  // an empty shape runs one group, as in TVM
    }
    TVM_FFI_ICHECK(Device::Count() > 0) << "No OpenCL device";
    Device& device = Device::Current();
    const std::size_t global[3] = {extent[0] * extent[3], extent[1] * extent[4], extent[2] * extent[5]};
    const cl_kernel kernel = KernelOn(device);
    const auto enqueue = [&](cl_command_queue queue, cl_event* event) {
      for (cl_uint i = 0; i < signature_.arg_types.size(); ++i) SetArgument(device, kernel, i, raw[i]);
      Check(clEnqueueNDRangeKernel(queue, kernel, dimensions_, nullptr, global, &extent[3], 0, nullptr, event));
    };
    if (fault_ != nullptr) return fault_->Launch(device.queue(), enqueue);
    device.queue().Launch(enqueue);
  }

 private:
  cl_kernel KernelOn(Device& device) {
    std::lock_guard<std::mutex> guard(mutex_);
    Kernel& kernel = kernels_[device.index()];
    if (!kernel) kernel = programs_->Create(device, name_);
    return kernel.get();
  }

  void SetArgument(const Device& device, cl_kernel kernel, cl_uint index, const TVMFFIAny& arg) const {
    const DLDataType type = signature_.arg_types[index];
    cl_int code = CL_SUCCESS;
    if (type.code == kDLOpaqueHandle) {
      const Memory* memory = MemoryOf(arg);
      if (memory != nullptr && &memory->device != &device) {
        TVM_FFI_THROW(ValueError) << "OpenCL: argument " << index << " of kernel '" << name_
                                  << "' lies on another device";
      }
      const cl_mem object = memory == nullptr ? nullptr : memory->object.get();
      code = clSetKernelArg(kernel, index, sizeof(object), &object);
    } else if (type.code == kDLFloat) {
      const double value = NumberOf(arg);
      const auto single = static_cast<float>(value);
      code = type.bits == 32 ? clSetKernelArg(kernel, index, sizeof(single), &single)
                             : clSetKernelArg(kernel, index, sizeof(value), &value);
    } else {  // little-endian, so the low bytes of the 64-bit value come first
      const std::int64_t value = IntegerOf(arg);
      code = clSetKernelArg(kernel, index, type.bits / 8, &value);
    }
    Check(code);
  }

  std::shared_ptr<Programs> programs_;
  std::string name_;
  const Signature signature_;
  std::vector<std::size_t> slots_;
  cl_uint dimensions_ = 1;
  std::unique_ptr<const Fault> fault_;
  std::mutex mutex_;
  std::map<int, Kernel> kernels_;
};

class OpenCLModule final : public ffi::ModuleObj {
 public:
  explicit OpenCLModule(const ffi::Bytes& bytes) : bytes_(bytes) {
    WholeReader reader({bytes.data(), bytes.size()});
    const std::string format = reader.String();
    if (format != "cl")
      TVM_FFI_THROW(ValueError) << "OpenCL: kernels in the format '" << format << "' cannot be loaded";
    std::map<std::string, Signature> signatures;
    for (auto left = reader.Count(8); left > 0; --left) {
      std::string name = reader.String();
      signatures.emplace(std::move(name), ReadSignature(reader));
    }
    source_ = reader.String();
    if (!reader.at_end()) TVM_FFI_THROW(ValueError) << "OpenCL: unknown data after the module's source";
    programs_ = std::make_shared<Programs>(source_);
    TVM_FFI_ICHECK(programs_->size() != 0) << "The OpenCL module expects a kernel delimited source from code "
                                           << "generation, but no kernel delimiter was found.";
    TVM_FFI_ICHECK_EQ(signatures.size(), programs_->size())
        << "The number of parsed kernel sources does not match the number of kernel functions";
    for (const auto& [name, signature] : signatures) {
      launchers_.emplace(name, std::make_shared<Launcher>(programs_, name, signature));
    }
  }

  const char* kind() const final { return "opencl"; }
  int GetPropertyMask() const final { return ffi::Module::kBinarySerializable | ffi::Module::kRunnable; }
  ffi::Bytes SaveToBytes() const final { return bytes_; }
  ffi::String InspectSource(const ffi::String& format) const final { return format.empty() ? source_ : ""; }

  ffi::Optional<ffi::Function> GetFunction(const ffi::String& name) final {
    if (name == "opencl.GetPreCompiledPrograms") {
      return ffi::Function::FromTyped(
          [programs = programs_]() { return programs->SaveBinaries(Device::Current()); });
    }
    if (name == "opencl.SetPreCompiledPrograms") {
      return ffi::Function::FromTyped([programs = programs_](const std::string& bytes) {
        programs->LoadBinaries(Device::Current(), bytes);
      });
    }
    const auto found = launchers_.find(name);
    if (found == launchers_.end()) return std::nullopt;
    found->second->Bind();
    return ffi::Function::FromPacked(
        [launcher = found->second](ffi::PackedArgs args, ffi::Any*) { (*launcher)(args); });
  }

 private:
  ffi::Bytes bytes_;
  std::string source_;
  std::shared_ptr<Programs> programs_;
  std::map<std::string, std::shared_ptr<Launcher>> launchers_;
};

TVM_FFI_STATIC_INIT_BLOCK() {
  refl::GlobalDef().def("ffi.Module.load_from_bytes.opencl",
                        [](const ffi::Bytes& bytes) { return ffi::Module(ffi::make_object<OpenCLModule>(bytes)); });
}

}  // namespace
}  // namespace adreno_bench
