// The wheels ship tvm/runtime/tensor.h but not the stream header it includes. Its inline Save and Load need these
// declarations to be parsed; nothing here is ever called, so nothing is defined. A wheel that ships the real header
// wins, because this folder is searched last.
#ifndef TVM_SUPPORT_IO_H_
#define TVM_SUPPORT_IO_H_

#include <cstddef>

namespace tvm::support {

class Stream {
 public:
  virtual ~Stream() = default;
  virtual std::size_t Read(void* data, std::size_t nbytes) = 0;
  virtual std::size_t Write(const void* data, std::size_t nbytes) = 0;
  template <typename T>
  bool Read(T* value);
  template <typename T>
  void Write(const T& value);
  template <typename T>
  bool ReadArray(T* values, std::size_t count);
  template <typename T>
  void WriteArray(const T* values, std::size_t count);
};

}  // namespace tvm::support

#endif
