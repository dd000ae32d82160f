#include "cli/Crash.h"
#include "cli/TemporaryFolder.h"
#include "compiler/DiagnosticRendering.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Signals.h"
#include <atomic>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <unistd.h>

using namespace llvm;

namespace ptc {

/// Safe in a signal handler.
static void write(StringRef text) {
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

/// A crash is ours, unless the code of a library was running: build systems can tell both from a wrong model.
void Crash::report(void *crash) {
  const char *library = static_cast<Crash *>(crash)->library;
  if (!*library) {
    write("ptc: error: internal error: this is a defect of ptc, not of the model. `ptc compile --save-temps=DIR` keeps "
          "the stages before it.\n");
    ::_exit(exitInternal);
  }
  write("ptc: error: ptc crashed while the code of '");
  write(library);
  write("' was loaded\n  help: the library is damaged, or a tensor is not what it is said to be; compile the model "
        "again. "
        "If that does not help, it is a defect of ptc.\n");
  ::_exit(exitRunFailure);
}

/// Files that were begun are removed, as by a signal.
[[noreturn]] static void endForLack(StringRef what) {
  write("ptc: error: out of memory");
  write(what);
  write("\n  help: the limits of the process are too low for this model (see `ulimit -a`); compiling needs less with "
        "-j 1\n");
  sys::RunInterruptHandlers();
  ::_exit(exitLimit);
}

static void reportOutOfMemory(void *, const char *, bool) { endForLack(""); }

/// LLVM ends the process itself where the system refuses it a thread.
static void reportFatal(void *, const char *reason, bool) {
  if (StringRef(reason).contains("pthread"))
    endForLack(" for another thread");
  write("ptc: error: internal error: ");
  write(reason);
  write("\n");
  sys::RunInterruptHandlers();
  ::_exit(exitInternal);
}

/// The C++ library reports a thread that the system refused as an exception, and nobody catches it here.
static void endForException() {
  try {
    if (std::exception_ptr current = std::current_exception())
      std::rethrow_exception(current);
  } catch (const std::system_error &) {
    endForLack(" for another thread");
  } catch (...) {
  }
  std::abort();
}

static std::atomic<bool> isInterrupted = false;

/// Removes what was begun, then dies of the signal, as shells and make expect.
static void interrupt(int signal) {
  isInterrupted = true;
  ::signal(signal, SIG_DFL);
  sys::RunInterruptHandlers();
  TemporaryFolder::removeAll();
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, signal);
  pthread_sigmask(SIG_UNBLOCK, &mask, nullptr);
  ::kill(::getpid(), signal);
}

void Crash::waitIfInterrupted() {
  while (isInterrupted)
    ::pause();
}

void Crash::install() {
  sys::AddSignalHandler(report, this);
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    if (::signal(signal, interrupt) == SIG_IGN) // nohup
      ::signal(signal, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN); // a file that may not grow is an error of write, which is reported
  install_bad_alloc_error_handler(reportOutOfMemory);
  install_fatal_error_handler(reportFatal);
  std::set_terminate(endForException);
  std::set_new_handler([] { endForLack(""); });
}

void Crash::suspect(StringRef path) {
  size_t length = std::min(path.size(), sizeof(library) - 1);
  std::memcpy(library, path.data(), length);
  library[length] = 0;
}

} // namespace ptc
