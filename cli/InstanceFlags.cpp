// Flags of verbs that run a library.
#include "cli/ModelLibrary.h"
#include "cli/Verb.h"

namespace ptc {

void addDeviceOption(CLI::App &app, InstanceOptions &options) {
  app.add_option(
         "--device", options.device,
         "what a library for several targets runs on: cpu, cuda or cuda:N (default: a GPU that its code runs on, "
         "else the CPU)")
      ->type_name("DEVICE");
}

void addInstanceOptions(CLI::App &app, InstanceOptions &options) {
  addDeviceOption(app, options);
  app.add_option("--cpu", options.cpuLevel, "one of the library's CPU levels (default: the best of this machine)")
      ->type_name("LEVEL");
  app.add_option("--weights", options.weightsPath, "where the weights file is (default: beside the library)")
      ->type_name("FILE");
  app.add_option("--custom-op-dir", options.customOpFolder,
                 "where libraries of custom operators are (default: beside the library)")
      ->type_name("DIR");
}

} // namespace ptc
