#include "fault.h"

#include <fnmatch.h>
#include <signal.h>
#include <sys/prctl.h>
#include <tvm/ffi/error.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

namespace adreno_bench {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool Matches(const std::string& kernel, const std::string& glob) {
  return fnmatch(glob.c_str(), kernel.c_str(), 0) == 0;
}

std::string Content(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

Slowness SlownessOf(const std::string& kernel) {
  const std::string text = Environment(kSlowVariable);
  std::istringstream words(text);
  while (!(words >> std::ws).eof()) {
    double factor = 1, least_s = 0;
    std::string glob;
    if (!(words >> factor >> least_s >> glob)) {
      TVM_FFI_THROW(ValueError) << kSlowVariable << "='" << text << "' is not a row of FACTOR LEAST_S GLOB";
    }
    if (Matches(kernel, glob)) return {factor, static_cast<std::int64_t>(least_s * 1e9)};
  }
  return {};
}

cl_int CodeOf(const std::string& kernel) {
  const std::string text = Environment(kFailVariable);
  std::istringstream words(text);
  while (!(words >> std::ws).eof()) {
    cl_int code = CL_SUCCESS;
    std::string glob;
    if (!(words >> code >> glob)) {
      TVM_FFI_THROW(ValueError) << kFailVariable << "='" << text << "' is not a row of CODE GLOB";
    }
    if (Matches(kernel, glob)) return code;
  }
  return CL_SUCCESS;
}

}  // namespace

std::unique_ptr<const Fault> Fault::Of(const std::string& kernel) {
  auto fault = std::make_unique<Fault>();
  fault->kernel_ = kernel;
  fault->slowness_ = SlownessOf(kernel);
  const std::string hanging = Environment(kHangVariable);
  fault->hangs_ = !hanging.empty() && Matches(kernel, hanging);
  fault->code_ = CodeOf(kernel);
  fault->resets_file_ = Environment(kResetVariable);
  if (!fault->resets_file_.empty()) fault->resets_before_ = Content(fault->resets_file_);
  const bool healthy = !fault->slowness_.any() && !fault->hangs_ && fault->code_ == CL_SUCCESS && fault->resets_file_.empty();
  return healthy ? nullptr : std::move(fault);
}

void Fault::FailAfterReset() const {
  if (!resets_file_.empty() && Content(resets_file_) != resets_before_) {
    Check(CL_OUT_OF_RESOURCES);
  }
}

void Fault::Hang() {
  signal(SIGTERM, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, 0);  // the end of the server, which SIGTERM does reach, would be our end
  for (;;) pause();
}

void Fault::Tell() const {
  if (slowness_.any() && !told_.exchange(true)) std::cerr << "slowing kernel '" << kernel_ << "'" << std::endl;
}

}  // namespace adreno_bench
