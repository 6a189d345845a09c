#include "program.h"

#include <tvm/ffi/error.h>

#include "device.h"
#include "reader.h"

namespace adreno_bench {
namespace {

constexpr std::string_view kDelimiter = "// Function: ";

std::string BuildLog(cl_program program, cl_device_id device) {
  std::size_t size = 0;
  if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) != CL_SUCCESS) return "";
  std::string log(size, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return log.c_str();  // up to the terminating zero
}

Program FromSource(const Device& device, const std::string& source) {
  const char* text = source.data();
  const std::size_t length = source.size();
  cl_int code = CL_SUCCESS;
  Program program(clCreateProgramWithSource(device.context(), 1, &text, &length, &code));
  Check(code);
  return program;
}

cl_int Build(cl_program program, const Device& device) {
  const cl_device_id id = device.facts().id;
  return clBuildProgram(program, 1, &id, nullptr, nullptr, nullptr);
}

Program FromBinary(const Device& device, const std::string& binary) {
  const cl_device_id id = device.facts().id;
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t length = binary.size();
  cl_int status = CL_SUCCESS, code = CL_SUCCESS;
  Program program(clCreateProgramWithBinary(device.context(), 1, &id, &length, &data, &status, &code));
  Check(code);
  Check(status);
  return program;
}

std::string Binary(cl_program program) {
  std::size_t size = 0;
  Check(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr));
  TVM_FFI_ICHECK(size > 0) << "Size of binary is 0";
  std::string binary(size, '\0');
  char* data = binary.data();
  Check(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(data), &data, nullptr));
  return binary;
}

}  // namespace

Programs::Programs(std::string_view source) {
  std::size_t begin = source.find(kDelimiter);
  while (begin != std::string_view::npos) {
    const std::size_t line_end = std::min(source.find('\n', begin), source.size());
    const std::size_t text = std::min(line_end + 1, source.size());  // the device's compiler counts lines from here
    const std::size_t next = source.find(kDelimiter, text);
    const auto name = source.substr(begin + kDelimiter.size(), line_end - begin - kDelimiter.size());
    sources_.emplace(name, source.substr(text, next - text));
    begin = next;
  }
}

cl_program Programs::Get(Device& device, const std::string& name) {
  Program& program = built_[{device.index(), name}];
  if (program) return program.get();
  const auto [whole, is_new] = whole_.try_emplace(device.index());
  if (is_new && sources_.size() > 1) {
    std::string all;
    for (const auto& [_, source] : sources_) all += source + "\n";
    whole->second = FromSource(device, all);
    if (Build(whole->second.get(), device) != CL_SUCCESS) whole->second.reset();
  }
  return whole->second ? whole->second.get() : GetAlone(device, name);
}

cl_program Programs::GetAlone(Device& device, const std::string& name) {
  Program& program = built_[{device.index(), name}];
  if (program) return program.get();
  program = FromSource(device, sources_[name]);
  if (const cl_int code = Build(program.get(), device); code != CL_SUCCESS) {
    const cl_device_id id = device.facts().id;
    TVM_FFI_THROW(InternalError) << "OpenCL build error for device=" << id << "\nError: " << ErrorName(code) << "\n"
                                 << BuildLog(program.get(), id);
  }
  return program.get();
}

Kernel Programs::Create(Device& device, const std::string& name) {
  std::lock_guard<std::mutex> guard(mutex_);
  cl_int code = CL_SUCCESS;
  Kernel kernel(clCreateKernel(Get(device, name), name.c_str(), &code));
  Check(code);
  return kernel;
}

std::string Programs::SaveBinaries(Device& device) {
  std::lock_guard<std::mutex> guard(mutex_);
  Writer writer;
  writer.Number(sources_.size());
  for (const auto& [name, source] : sources_) {
    writer.Text(name);
    writer.Text(Binary(GetAlone(device, name)));
  }
  return writer.Release();
}

void Programs::LoadBinaries(Device& device, std::string_view bytes) {
  std::lock_guard<std::mutex> guard(mutex_);
  const cl_device_id id = device.facts().id;
  WholeReader reader(bytes);
  for (auto left = reader.Count(2 * sizeof(std::uint64_t)); left > 0; --left) {
    const std::string name = reader.String();
    const std::string binary = reader.String();
    Program& program = built_[{device.index(), name}];
    if (program) continue;
    program = FromBinary(device, binary);
    if (clBuildProgram(program.get(), 0, nullptr, nullptr, nullptr, nullptr) != CL_SUCCESS) {
      TVM_FFI_THROW(InternalError) << "OpenCL build error for device=" << id << "\n" << BuildLog(program.get(), id);
    }
  }
}

}  // namespace adreno_bench
