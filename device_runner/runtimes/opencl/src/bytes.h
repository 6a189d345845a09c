// TVM's binary streams: little-endian numbers, and counts of 64 bits before strings and arrays.
#pragma once

#include <tvm/ffi/error.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace adreno_bench {

/// Reads a stream that may come from anywhere: every length is checked against what is left.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  T Number() {
    T value;
    std::memcpy(&value, Take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string String() { return std::string(Take(Number<std::uint64_t>())); }
  /// A count of things of at least `nbytes_each`.
  std::uint64_t Count(std::size_t nbytes_each) {
    const auto count = Number<std::uint64_t>();
    if (count > left_.size() / nbytes_each) Truncated();
    return count;
  }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view Take(std::uint64_t nbytes) {
    if (nbytes > left_.size()) Truncated();
    const std::string_view taken = left_.substr(0, nbytes);
    left_.remove_prefix(nbytes);
    return taken;
  }
  [[noreturn]] static void Truncated() {
    TVM_FFI_THROW(ValueError) << "OpenCL: truncated or foreign data";
    TVM_FFI_UNREACHABLE();
  }

  std::string_view left_;
};

class Writer {
 public:
  template <typename T>
  void Number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void String(std::string_view text) {
    Number<std::uint64_t>(text.size());
    bytes_.append(text);
  }
  std::string Release() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "TVM's streams are little-endian, and so must be the machine that reads them here"
#endif

}  // namespace adreno_bench
