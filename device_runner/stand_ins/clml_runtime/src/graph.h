// The graph that TVM's CLML code generator writes as JSON, checked so that the rest may trust its numbers.
#pragma once

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/string.h>

#include <cstdint>
#include <string>
#include <vector>

namespace adreno_bench::clml {

namespace ffi = tvm::ffi;

/// One output of one node.
struct Entry {
  std::size_t node = 0;
  std::size_t output = 0;
};

struct Node {
  enum class Kind { kInput, kConst, kKernel };

  Kind kind = Kind::kInput;
  std::string name;
  std::vector<Entry> inputs;
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<DLDataType> dtypes;
  ffi::json::Object attrs;

  bool Has(const char* key) const { return attrs.count(ffi::String(key)) > 0; }
  /// An attribute. Throws if it is absent or of another type, as TVM's runtime does.
  template <typename T>
  T Get(const char* key) const {
    const auto found = attrs.find(ffi::String(key));
    TVM_FFI_ICHECK(found != attrs.end()) << "Key: " << key << " is not found";
    return (*found).second.template cast<T>();
  }
};

struct Graph {
  std::vector<Node> nodes;
  /// Nodes whose tensors are the function's arguments or constants, in their order.
  std::vector<std::size_t> inputs;
  std::vector<std::size_t> constants;
  std::vector<Entry> outputs;

  /// Throws what TVM's runtime throws for a graph that it cannot load, and for what it fails to check: ids outside the
  /// graph, nodes that read later nodes, tables that do not add up.
  static Graph Parse(const ffi::String& json, const ffi::Array<ffi::String>& const_names);
};

}  // namespace adreno_bench::clml
