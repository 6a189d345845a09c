// Device memory: buffers, images, and the pool that keeps buffers for the next inference.
#pragma once

#include <tvm/ffi/dtype.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cl.h"

namespace adreno_bench {

class Device;

/// An array of RGBA images. TVM keeps four neighbouring elements of a tensor in one texel.
struct ImageShape {
  std::size_t width, height, layers;
};

/// How a tensor of this shape lies in an image of a storage scope (apache/tvm texture.h): which axes are layers, rows and
/// columns depends on the scope. The last axis is taken for the four elements of a texel, however many it has. Throws
/// InternalError for an unknown scope and for too few axes.
ImageShape Flattened(int ndim, const std::int64_t* shape, const std::string& scope);

inline bool IsBuffer(const std::string& scope) { return scope.empty() || scope == "global"; }
inline bool IsTexture(const std::string& scope) { return scope.find("texture") != std::string::npos; }

/// What a tensor's data pointer points to.
struct Memory {
  Device& device;
  const std::size_t nbytes;
  /// Of the image; empty for a buffer.
  const std::string scope;
  /// The pool's buffer that an image of its own lies over; null for a buffer, a view, and an image without one.
  Memory* const under = nullptr;
  const MemObject object;

  bool is_image() const { return !scope.empty(); }

  /// A buffer. Throws InternalError if the device has no room.
  Memory(Device& device, std::size_t nbytes);
  /// An image. Throws InternalError if the device has no room, or no images of this size or of such elements.
  Memory(Device& device, const ImageShape& image, DLDataType dtype, const std::string& scope);
  /// An image over a buffer, where the device can (AllocDataSpaceView of TVM's runtime); `owned` if it goes with it.
  Memory(const ImageShape& image, DLDataType dtype, const std::string& scope, Memory& buffer, bool owned);
};

/// Bytes that an image takes in a buffer: its rows are aligned.
std::size_t BytesOf(const Device& device, const ImageShape& image, DLDataType dtype);
/// An image with memory of its own: in a buffer of the pool, where the device can.
Memory* NewImage(Device& device, const ImageShape& image, DLDataType dtype, const std::string& scope);
/// Ends an image, and gives back the buffer that was its own.
void DeleteImage(Memory* image);

/// Keeps buffers by their size. The queue runs commands in order, so one may be given back while they still use it.
class Pool {
 public:
  explicit Pool(Device& device) : device_(device) {}

  /// A buffer of at least this size, kept or new. If the device has no room, releases what is kept and tries again.
  Memory* Take(std::size_t nbytes);
  /// Keeps a buffer that this pool gave out for the next `Take`.
  void Give(Memory* buffer);
  /// Releases a buffer that this pool gave out.
  void Release(Memory* buffer);
  /// Releases everything that is kept.
  void Clear();
  /// Bytes in use and kept.
  std::size_t nbytes();

 private:
  Memory* New(std::size_t nbytes);

  Device& device_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<Memory*>> kept_;
  std::size_t nbytes_ = 0;
};

}  // namespace adreno_bench
