// Device memory: buffers, images, and the pool that keeps them for the next inference.
#pragma once

#include <tvm/ffi/dtype.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cl.h"

namespace adreno_bench {

class Device;

/// An array of RGBA images. TVM keeps four neighbouring elements of a tensor in one texel.
struct ImageShape {
  std::size_t width, height, layers;
  unsigned channel_bits;  // 16 or 32, floating point

  std::size_t nbytes() const { return width * height * layers * 4 * channel_bits / 8; }
};

/// What one piece of memory is: so many bytes, or an image.
struct Layout {
  std::size_t nbytes;
  std::optional<ImageShape> image;

  bool operator<(const Layout& other) const;
};

/// The layout of a tensor in a storage scope: "" and "global" are buffers, "global.texture*" are images.
/// TVM's flattening of `shape` into layers, rows and columns depends on the scope (apache/tvm texture.h).
Layout LayoutOf(int ndim, const std::int64_t* shape, DLDataType dtype, const std::string& scope);
inline bool IsTexture(const std::string& scope) { return scope.find("texture") != std::string::npos; }

/// What a tensor's data pointer points to.
struct Memory {
  Device& device;
  const Layout layout;
  const MemObject object;

  /// Throws RuntimeError if the device has no room, or no images of this size.
  Memory(Device& device, const Layout& layout);
};

/// Keeps memory by its layout. The queue runs commands in order, so memory may be given back while they still use it.
class Pool {
 public:
  explicit Pool(Device& device) : device_(device) {}

  /// New memory that is not this pool's. If the device has none left, releases what is kept and tries again.
  Memory* New(const Layout& layout);
  /// Memory of this layout, kept or new; buffers may be a little larger.
  Memory* Take(Layout layout);
  /// Keeps memory that this pool gave out for the next `Take`.
  void Give(Memory* memory);
  /// Releases memory that this pool gave out.
  void Release(Memory* memory);
  /// Releases everything that is kept.
  void Clear();
  /// Bytes in use and kept.
  std::size_t nbytes();

 private:
  Device& device_;
  std::mutex mutex_;
  std::map<Layout, std::vector<Memory*>> kept_;
  std::size_t nbytes_ = 0;
};

/// Memory of a pool for the time of one scope.
class Borrowed {
 public:
  Borrowed(Pool& pool, const Layout& layout) : pool_(pool), memory_(pool.Take(layout)) {}
  ~Borrowed() { pool_.Give(memory_); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  Memory* get() const { return memory_; }

 private:
  Pool& pool_;
  Memory* memory_;
};

}  // namespace adreno_bench
