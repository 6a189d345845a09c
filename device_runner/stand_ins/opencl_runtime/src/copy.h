// Copies between host memory, buffers and images.
#pragma once

#include <dlpack/dlpack.h>

namespace adreno_bench {

/// Copies a tensor's elements. Copies to or from the host have ended when this returns; copies on one device are
/// enqueued. How much of an image is copied follows from the tensors alone, as in TVM's runtime: between two images it
/// is what the target holds, wherever the source has it. Throws InternalError for what OpenCL refuses.
void CopyTensor(const DLTensor& from, const DLTensor& to);

}  // namespace adreno_bench
