// TVM's tuning file: records of a magic number, a reserved number, a symbol and what the driver wants to remember.
// Records are only ever appended, and the first that names the symbol is read.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace adreno_bench::clml {

/// What a file remembers of a symbol, or nothing. A record that cannot be read hides all that follow it. Throws if the
/// file cannot be read at all.
std::optional<std::string> FindTuning(const std::string& file, const std::string& symbol);

/// Throws if the file cannot be written.
void AppendTuning(const std::string& file, const std::string& symbol, std::string_view blob);

/// What the model remembers in place of the driver: which operators were tuned.
using TunedOperators = std::set<std::uint64_t>;

std::string EncodeTuning(const TunedOperators& operators);

/// Throws, as the driver would, for what was not encoded here.
TunedOperators DecodeTuning(std::string_view blob);

}  // namespace adreno_bench::clml
