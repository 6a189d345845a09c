// Reading a module's bytes and binaries, which end in an exception where they are not whole.
#pragma once

#include <bytes.h>
#include <tvm/ffi/error.h>

#include <string>

namespace adreno_bench {

/// A stream of which every length is checked against what is left. Throws ValueError.
class WholeReader {
 public:
  explicit WholeReader(std::string_view bytes) : reader_(bytes) {}

  template <typename T>
  T Number() {
    T value{};
    Require(reader_.Number(&value));
    return value;
  }
  std::string String() {
    std::string text;
    Require(reader_.Text(&text));
    return text;
  }
  /// A count of things of at least `nbytes_each`.
  std::uint64_t Count(std::size_t nbytes_each) {
    const auto count = Number<std::uint64_t>();
    Require(count <= reader_.left().size() / nbytes_each);
    return count;
  }
  bool at_end() const { return reader_.left().empty(); }

 private:
  static void Require(bool enough) {
    if (!enough) TVM_FFI_THROW(ValueError) << "OpenCL: truncated or foreign data";
  }

  Reader reader_;
};

}  // namespace adreno_bench
