// TVM's binary streams: little-endian numbers, and counts of 64 bits before strings and arrays.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace adreno_bench {

/// Reads a stream that may come from anywhere: every read checks what is left and says whether there was enough.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  bool Number(T* value) {
    if (left_.size() < sizeof(*value)) return false;
    std::memcpy(value, left_.data(), sizeof(*value));
    left_.remove_prefix(sizeof(*value));
    return true;
  }
  bool Text(std::string* text) {
    std::uint64_t size = 0;
    if (!Number(&size) || size > left_.size()) return false;
    text->assign(left_.substr(0, size));
    left_.remove_prefix(size);
    return true;
  }
  std::string_view left() const { return left_; }

 private:
  std::string_view left_;
};

class Writer {
 public:
  void Number(std::uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void Text(std::string_view text) {
    Number(text.size());
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
