// Copies between host memory, buffers and images.
#pragma once

#include <dlpack/dlpack.h>

namespace adreno_bench {

/// Copies a tensor's elements. Copies to or from the host have ended when this returns; copies on one device are
/// enqueued. Throws ValueError for what OpenCL cannot express: a strided tensor, a part of an image.
void CopyTensor(const DLTensor& from, const DLTensor& to);

}  // namespace adreno_bench
