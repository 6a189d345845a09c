#include "graph.h"

#include <algorithm>
#include <string_view>

namespace adreno_bench::clml {
namespace {

namespace json = ffi::json;

/// Deeper than any graph of TVM's; the parser recurses, and a deep enough text would end the process.
constexpr int kMaxDepth = 32;

[[noreturn]] void Malformed(const std::string& what) {
  TVM_FFI_THROW(InternalError) << "CLML graph: " << what;
  TVM_FFI_UNREACHABLE();
}

void CheckDepth(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      if (++depth > kMaxDepth) Malformed("brackets nest deeper than " + std::to_string(kMaxDepth));
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
}

/// An index below `limit`.
std::size_t Index(const ffi::Any& value, std::size_t limit, const char* of_what) {
  const auto index = value.cast<std::int64_t>();
  if (index < 0 || static_cast<std::size_t>(index) >= limit) {
    Malformed(std::string(of_what) + " " + std::to_string(index) + " is not below " + std::to_string(limit));
  }
  return static_cast<std::size_t>(index);
}

Entry ReadEntry(const ffi::Any& value, const std::vector<Node>& known) {
  const auto parts = value.cast<json::Array>();
  if (parts.size() < 2) Malformed("an entry needs a node and an output");
  Entry entry;
  entry.node = Index(parts[0], known.size(), "node");
  entry.output = Index(parts[1], known[entry.node].shapes.size(), "output");
  return entry;
}

Node::Kind ReadKind(const std::string& op) {
  if (op == "input") return Node::Kind::kInput;
  if (op == "const") return Node::Kind::kConst;
  if (op == "kernel") return Node::Kind::kKernel;
  Malformed("unknown kind of node '" + op + "'");
}

void ReadAttributes(const json::Object& attrs, Node* node) {
  node->attrs = attrs;
  for (const auto& shape : node->Get<ffi::Array<ffi::Array<std::int64_t>>>("shape")) {
    node->shapes.emplace_back(shape.begin(), shape.end());
  }
  for (const DLDataType& dtype : node->Get<ffi::Array<DLDataType>>("dtype")) node->dtypes.push_back(dtype);
  if (node->shapes.empty() || node->shapes.size() != node->dtypes.size()) {
    Malformed("'" + node->name + "' has " + std::to_string(node->shapes.size()) + " shapes and " +
              std::to_string(node->dtypes.size()) + " types");
  }
}

/// A node reads only nodes `before` it: TVM writes them in that order, and so there are no cycles.
Node ReadNode(const json::Object& object, const std::vector<Node>& before) {
  Node node;
  std::string op;
  json::Object attrs;
  for (const auto& [any_key, value] : object) {
    const auto key = any_key.cast<ffi::String>();
    if (key == "op") {
      op = value.cast<ffi::String>();
    } else if (key == "name") {
      node.name = value.cast<ffi::String>();
    } else if (key == "inputs") {
      for (const ffi::Any& input : value.cast<json::Array>()) node.inputs.push_back(ReadEntry(input, before));
    } else if (key == "attr" || key == "attrs") {
      attrs = value.cast<json::Object>();
    } else {
      TVM_FFI_THROW(InternalError) << "Unknown key: " << key;
    }
  }
  node.kind = ReadKind(op);
  if (node.inputs.empty() == (node.kind == Node::Kind::kKernel)) {
    Malformed("the " + op + " '" + node.name + "' has " + std::to_string(node.inputs.size()) + " inputs");
  }
  ReadAttributes(attrs, &node);
  return node;
}

/// `arg_nodes` must name every input and constant once: what it leaves out is never given a tensor.
void ReadArguments(const json::Array& ids, Graph* graph) {
  std::vector<bool> named(graph->nodes.size());
  for (const ffi::Any& id : ids) {
    const std::size_t index = Index(id, graph->nodes.size(), "node");
    const Node& node = graph->nodes[index];
    if (node.kind == Node::Kind::kKernel || named[index]) Malformed("'" + node.name + "' is not one argument");
    named[index] = true;
    (node.kind == Node::Kind::kInput ? graph->inputs : graph->constants).push_back(index);
  }
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (!named[i] && graph->nodes[i].kind != Node::Kind::kKernel) {
      Malformed("'" + graph->nodes[i].name + "' is not among arg_nodes");
    }
  }
}

void CheckRows(const json::Array& rows, const std::vector<Node>& nodes) {
  if (rows.size() != nodes.size() + 1) Malformed("node_row_ptr does not fit the nodes");
  std::size_t sum = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].cast<std::int64_t>() != static_cast<std::int64_t>(sum)) Malformed("node_row_ptr is not a running sum");
    if (i < nodes.size()) sum += nodes[i].shapes.size();
  }
}

void CheckConstants(const Graph& graph, const ffi::Array<ffi::String>& names) {
  for (const std::size_t id : graph.constants) {
    const std::string& name = graph.nodes[id].name;
    TVM_FFI_ICHECK(std::find(names.begin(), names.end(), name) != names.end())
        << "Found non-existent constant: " << name;
  }
  TVM_FFI_ICHECK_EQ(graph.constants.size(), names.size())
      << "Found mismatch for the number of constants in the graph and required.";
  for (std::size_t i = 0; i < names.size(); ++i) {
    TVM_FFI_ICHECK_EQ(graph.nodes[graph.constants[i]].name, std::string(names[i]))
        << "The position of constant in the graph must be the same as the required.";
  }
}

json::Array Table(const json::Object& root, const char* key) {
  const auto found = root.find(ffi::String(key));
  if (found == root.end()) Malformed(std::string("there is no ") + key);
  return (*found).second.cast<json::Array>();
}

}  // namespace

Graph Graph::Parse(const ffi::String& text, const ffi::Array<ffi::String>& const_names) {
  CheckDepth({text.data(), text.size()});
  const auto root = json::Parse(text).cast<json::Object>();
  constexpr std::string_view kKnown[] = {"nodes", "arg_nodes", "heads", "node_row_ptr", "symbol"};
  for (const auto& [any_key, value] : root) {
    const std::string key = any_key.cast<ffi::String>();
    if (std::find(std::begin(kKnown), std::end(kKnown), key) == std::end(kKnown)) {
      TVM_FFI_THROW(InternalError) << "Unknown key: " << key;
    }
  }
  Graph graph;
  for (const ffi::Any& node : Table(root, "nodes")) {
    graph.nodes.push_back(ReadNode(node.cast<json::Object>(), graph.nodes));
  }
  ReadArguments(Table(root, "arg_nodes"), &graph);
  CheckRows(Table(root, "node_row_ptr"), graph.nodes);
  for (const ffi::Any& head : Table(root, "heads")) graph.outputs.push_back(ReadEntry(head, graph.nodes));
  CheckConstants(graph, const_names);
  return graph;
}

}  // namespace adreno_bench::clml
