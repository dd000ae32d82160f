// ptc completion: the script by which a shell completes ptc's command lines.
#include "cli/help/Completion.h"
#include "cli/Verb.h"

namespace ptc {

Action declareCompletion(CLI::App &app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "whose script is printed")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  return [shell](Session &session) {
    std::vector<VerbShape> verbs = describeVerbs();
    if (*shell == "bash")
      printBashCompletion(session.out, verbs);
    else if (*shell == "zsh")
      printZshCompletion(session.out, verbs);
    else
      printFishCompletion(session.out, verbs);
    return llvm::Error::success();
  };
}

} // namespace ptc
