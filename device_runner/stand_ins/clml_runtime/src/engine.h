// A graph with its constants, built the way TVM's runtime builds it and run on the CPU.
#pragma once

#include <tvm/ffi/function.h>
#include <tvm/runtime/tensor.h>

#include <map>
#include <string>
#include <vector>

#include "graph.h"
#include "ops.h"

namespace adreno_bench::clml {

class Engine {
 public:
  /// Throws what TVM's runtime would throw for constants, a tuning file or operators that it cannot use.
  Engine(const Graph& graph, const std::string& symbol, const ffi::Array<tvm::runtime::Tensor>& constants);

  /// `args`: a tensor for every input, then one for every output.
  void Run(ffi::PackedArgs args) const;

 private:
  /// A tensor of the caller's, and the node whose values are read from it or written to it.
  struct Binding {
    std::size_t node;
    const DLTensor* tensor;
  };
  struct Bindings {
    std::vector<Binding> inputs, outputs;
  };

  void CheckEnds() const;
  Bindings Bind(ffi::PackedArgs args) const;
  void Compute(const Step& step, std::map<std::size_t, Values>* values) const;
  Values OutputOf(std::size_t node, const std::map<std::size_t, Values>& values) const;

  const Graph& graph_;
  Tensors tensors_;
  std::vector<Step> steps_;
  /// Which step reads a node's tensor last; outputs are kept for a step that does not exist.
  std::map<std::size_t, std::size_t> last_reader_;
  std::map<std::size_t, Values> constants_;
  std::map<std::size_t, std::size_t> overwritten_;
};

}  // namespace adreno_bench::clml
