// The only file that knows the logging library.
#include "cli/Session.h"
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace ptc {

void Session::log(const llvm::Twine &line) const {
  if (!common.verbose)
    return;
  // A logger without registration in spdlog's global table: it lives as long as the program.
  static spdlog::logger logger = [] {
    spdlog::logger made("ptc", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern("ptc: [%H:%M:%S.%e] %v");
    return made;
  }();
  progress.clear();
  logger.info(line.str());
}

void Session::say(const llvm::Twine &line) const {
  if (common.quiet)
    return;
  progress.clear();
  out << line << '\n';
  out.flush();
}

} // namespace ptc
