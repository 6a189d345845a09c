#include "tuning.h"

#include <bytes.h>
#include <tvm/ffi/error.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>

#include "tensor.h"

namespace adreno_bench::clml {
namespace {

constexpr std::uint64_t kRecordMagic = 0x434C4D4C54554E45;
constexpr std::string_view kBlobHeader = "adreno-bench CLML tuning 1";
constexpr std::uintmax_t kMaxFileBytes = 256 << 20;

std::string Contents(const std::string& file) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  std::ifstream stream(file, std::ios::binary);
  TVM_FFI_ICHECK(!error && stream.good()) << "Cannot open " << file;
  TVM_FFI_ICHECK(size <= kMaxFileBytes) << "CLML model: " << file << " is too large for a tuning cache";
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

std::optional<std::string> FindTuning(const std::string& file, const std::string& symbol) {
  const std::string contents = Contents(file);
  Reader reader(contents);
  std::uint64_t magic = 0, reserved = 0, size = 0;
  std::string name, other;
  while (reader.Number(&magic) && magic == kRecordMagic && reader.Number(&reserved) && reader.Text(&name)) {
    if (name != symbol) {
      if (!reader.Text(&other)) break;
      continue;
    }
    // TVM's runtime does not notice that a record ends early, and gives the driver what there is.
    if (!reader.Number(&size) || size == 0) break;
    return std::string(reader.left().substr(0, size));
  }
  return std::nullopt;
}

void AppendTuning(const std::string& file, const std::string& symbol, std::string_view blob) {
  Writer writer;
  writer.Number(kRecordMagic);
  writer.Number(0);
  writer.Text(symbol);
  writer.Text(blob);
  static std::mutex mutex;  // modules may be initialised in several threads
  std::lock_guard<std::mutex> guard(mutex);
  std::ofstream stream(file, std::ios::app | std::ios::binary);
  TVM_FFI_ICHECK(!stream.fail()) << "Cannot open " << file;
  stream << writer.Release() << std::flush;
  TVM_FFI_ICHECK(!stream.fail()) << "CLML model: " << file << " cannot be written";
}

std::string EncodeTuning(const TunedOperators& operators) {
  Writer writer;
  writer.Text(kBlobHeader);
  writer.Number(operators.size());
  for (const std::uint64_t one : operators) writer.Number(one);
  return writer.Release();
}

TunedOperators DecodeTuning(std::string_view blob) {
  Reader reader(blob);
  std::string header;
  std::uint64_t count = 0, one = 0;
  TunedOperators operators;
  bool whole = reader.Text(&header) && header == kBlobHeader && reader.Number(&count);
  for (; whole && count > 0; --count) {
    whole = reader.Number(&one);
    operators.insert(one);
  }
  if (!whole || !reader.left().empty()) Refuse("clLoadMLTuningCacheQCOM", "not a record of the model");
  return operators;
}

}  // namespace adreno_bench::clml
