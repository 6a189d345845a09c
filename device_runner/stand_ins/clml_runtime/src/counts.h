// What happened in this process, for whoever wants proof without reading the log.
#pragma once

#include <cstdint>
#include <string>

namespace adreno_bench::clml {

/// What happened to one symbol.
struct Counts {
  std::int64_t hits = 0;
  std::int64_t misses = 0;
  /// Records written by a tuning run.
  std::int64_t saved = 0;
  /// Operators that are given a tuning cache, and those of them that the loaded record was really made for.
  std::int64_t tunable = 0;
  std::int64_t tuned = 0;
};

/// Add to one count of a symbol. Safe from any thread.
void Count(const std::string& symbol, std::int64_t Counts::*what);

}  // namespace adreno_bench::clml
