// ptc: verbs over models and the libraries made from them.
//
//   runProgram: expand @files, find the verb, parse its flags, run it, turn what happened into an exit code.
#include "cli/CompileSession.h"
#include "cli/Crash.h"
#include "cli/FlagTable.h"
#include "cli/VerbTable.h"
#include "cli/integration/IntegrationFiles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/StringSaver.h"

using namespace llvm;
using namespace ptc;

namespace {
struct Arguments {
  std::vector<std::string> words, files; // files: that words were read from
};

struct UsageError {
  std::string message, help;
};
} // namespace

static void printVerbs(raw_ostream &os) {
  os << "ptc: an ahead-of-time compiler from ONNX models to shared libraries\n\nUsage: ptc VERB [FLAGS]\n\nVerbs:\n";
  for (const VerbRow &verb : getVerbs())
    os << "  " << left_justify(verb.name, 12) << verb.summary << '\n';
  os << "\n`ptc VERB --help` lists a verb's flags. `ptc VERB @FILE` reads arguments from FILE.\n"
        "`ptc --mk` prints the file to include in a Makefile, `ptc --cmake` the folder of the CMake package, `ptc "
        "--include`\n"
        "that of the headers.\n";
}

/// The candidate that is the fewest edits away, if it is near.
static std::string nearest(StringRef word, ArrayRef<std::string> candidates) {
  std::string best;
  unsigned bestDistance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string &candidate : candidates)
    if (unsigned distance = word.edit_distance(candidate, true, bestDistance); distance < bestDistance)
      std::tie(best, bestDistance) = std::tuple(candidate, distance);
  return best;
}

static std::string suggest(StringRef word, ArrayRef<std::string> candidates, const Twine &otherwise) {
  std::string near = nearest(word, candidates);
  return near.empty() ? otherwise.str() : "did you mean '" + near + "'?";
}

static UsageError unknownFlag(const CLI::App &app, const CLI::ExtrasError &error, StringRef verb) {
  std::vector<std::string> remaining = app.remaining(/*recurse=*/true), names;
  std::string extra = remaining.empty() ? error.what() : remaining.front(), command = verb.str();
  StringRef flag = StringRef(extra).split('=').first;
  auto addNames = [&](const CLI::App &part) {
    for (const CLI::Option *option : part.get_options())
      for (const std::string &name : option->get_lnames())
        names.push_back("--" + name);
  };
  addNames(app);
  for (const CLI::App *part : app.get_subcommands()) { // those that were given
    addNames(*part);
    command += " " + part->get_name();
  }
  std::string help = "`ptc " + command + " --help` lists what there is";
  if (!flag.starts_with("-"))
    return {"unexpected argument '" + extra + "'", help};
  return {"unknown flag '" + flag.str() + "'", suggest(flag, names, help)};
}

/// "--threads=-1 is no number that it takes": values of flags that take words are checked by their verbs.
static UsageError notItsValue(const CLI::ConversionError &error, StringRef verb) {
  StringRef text = error.what();
  std::string message = text.str();
  if (text.consume_front("Could not convert: ")) {
    auto [flag, value] = text.split(" = ");
    message = (flag + "=" + value + " is no number that it takes").str();
  }
  return {message, "`ptc " + verb.str() + " --help` lists what there is"};
}

/// The first argument that is required and not there, as the usage line spells it; or which of its own verbs `verb` is
/// to do.
static UsageError missingArgument(const CLI::App &app, StringRef verb) {
  std::vector<const CLI::App *> parts = app.get_subcommands([](const CLI::App *) { return true; });
  if (std::vector<CLI::App *> given = app.get_subcommands(); !given.empty())
    return missingArgument(*given.front(), verb.str() + " " + given.front()->get_name());
  if (!parts.empty()) {
    std::vector<std::string> names, rest = app.remaining();
    for (const CLI::App *part : parts)
      names.push_back(part->get_name());
    std::string help = "`ptc " + verb.str() + " --help` lists what there is";
    if (rest.empty())
      return {"one of " + join(names, ", ") + " is missing", help};
    return {"'" + rest.front() + "' is none of " + join(names, ", "), suggest(rest.front(), names, help)};
  }
  for (const CLI::Option *option : app.get_options())
    if (option->get_required() && !option->count())
      return {option->get_type_name() + " is missing: " + option->get_description(),
              "ptc " + verb.str() + " " + option->get_type_name() + "; `ptc " + verb.str() +
                  " --help` lists the flags"};
  return {"an argument is missing", "`ptc " + verb.str() + " --help` lists what there is"};
}

/// Whether it is a flag of one letter with '=' behind it, as in -o=FILE.
static bool isLetterWithEquals(StringRef argument) {
  return argument.size() > 2 && argument[0] == '-' && llvm::isAlpha(argument[1]) && argument[2] == '=';
}

/// Flags that are spelled as other programs spell them, in the form that the parser knows.
static std::string canonicalSpelling(StringRef argument) {
  for (StringRef flag : {"-MD", "-MF", "-MT"})
    if (argument == flag)
      return ("-" + argument).str();
  if (isLetterWithEquals(argument) && argument.size() > 3)
    return (argument.take_front(2) + argument.drop_front(3)).str();
  return argument.str();
}

/// Takes a flag that ends behind its '=' out of the arguments: the parser would take the next one for its value.
static std::optional<UsageError> takeMissingValue(std::vector<std::string> &arguments) {
  auto empty = llvm::find_if(arguments, [](StringRef argument) {
    return (argument.starts_with("--") || isLetterWithEquals(argument)) && argument.find('=') == argument.size() - 1;
  });
  if (empty == arguments.end())
    return std::nullopt;
  UsageError error{"'" + *empty + "' has no value", "write it behind the '=', or leave the flag out"};
  arguments.erase(empty);
  return error;
}

/// `@FILE` stands for the arguments in FILE, but not as the value of a flag: `-i @inputs.npz` is an archive.
static void expand(StringRef argument, unsigned depth, Arguments &arguments) {
  std::vector<std::string> &given = arguments.words;
  bool isValue = !given.empty() && is_contained({"-i", "-o", "--input", "--output"}, given.back());
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = std::make_error_code(std::errc::invalid_argument);
  if (argument.starts_with("@") && !isValue && depth < 8)
    file = MemoryBuffer::getFile(argument.drop_front());
  if (!file) { // a file that is missing stays as it is written
    given.push_back(canonicalSpelling(argument));
    return;
  }
  arguments.files.push_back(argument.drop_front().str());
  BumpPtrAllocator allocator;
  StringSaver saver(allocator);
  SmallVector<const char *> words;
  cl::TokenizeGNUCommandLine((*file)->getBuffer(), saver, words);
  for (const char *word : words)
    expand(word, depth + 1, arguments);
}

static Arguments expandArguments(int argc, char **argv) {
  Arguments arguments;
  for (const char *argument : ArrayRef(argv, argc).drop_front())
    expand(argument, 0, arguments);
  return arguments;
}

static Diagnostics::Style styleOf(const CommonOptions &common) {
  DiagnosticFormat format = common.diagnostics == "json"    ? DiagnosticFormat::Json
                            : common.diagnostics == "sarif" ? DiagnosticFormat::Sarif
                                                            : DiagnosticFormat::Text;
  bool color = common.color == "always" || (common.color == "auto" && sys::Process::StandardErrHasColors());
  return {format, color, false};
}

static int runVerb(const VerbRow &verb, Arguments expanded, StringRef program, Crash &crash,
                   const CompilerParts &parts) {
  std::vector<std::string> &arguments = expanded.words;
  CommonOptions common;
  auto [parser, action] = declareVerb(verb, common);
  CLI::App &app = *parser;
  if (arguments.size() == 1 && arguments.front() == "--help=markdown") { // for docs/
    printFlagTable(outs(), app);
    return exitOk;
  }

  std::vector<std::string> given = arguments;
  std::optional<UsageError> wrong, missing = takeMissingValue(arguments);
  try {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(arguments);
  } catch (const CLI::CallForHelp &) {
    outs() << app.help();
    return exitOk;
  } catch (const CLI::ExtrasError &error) {
    wrong = unknownFlag(app, error, verb.name);
  } catch (const CLI::RequiredError &) {
    wrong = missingArgument(app, verb.name);
  } catch (const CLI::ConversionError &error) {
    wrong = notItsValue(error, verb.name);
  } catch (const CLI::ParseError &error) {
    wrong = {error.what(), "`ptc " + verb.name.str() + " --help` lists what there is"};
  }
  if (missing)
    wrong = missing;
  Diagnostics diagnostics(errs(), styleOf(common), "ptc");
  if (wrong) {
    diagnostics.error(exitUsage, wrong->message, wrong->help);
    return exitUsage;
  }
  Progress progress(!common.quiet && common.diagnostics == "text" && sys::Process::StandardErrIsDisplayed());
  diagnostics.beforePrint = [&] {
    progress.clear();
    outs().flush(); // so that both streams read in order when they go to one file
  };
  Session session{
      common, diagnostics, progress, crash, outs(), program.str(), std::move(given), std::move(expanded.files), parts};
  Error error = action(session);
  Crash::waitIfInterrupted();
  if (error)
    diagnostics.report(std::move(error));
  outs().flush();
  if (outs().has_error()) {
    diagnostics.error(exitFile, "cannot write to standard output: " + outs().error().message());
    outs().clear_error();
  }
  return diagnostics.exitCode();
}

/// `ptc --mk`, `ptc --cmake` and `ptc --include`: what to include in a Makefile, the folder of the CMake package
/// (ptc_DIR), and that of ptc/abi.h and its companions.
static int printIntegration(StringRef path, StringRef program) {
  Expected<std::string> found = findIntegration(path, program);
  if (found) {
    outs() << *found << '\n';
    return exitOk;
  }
  Diagnostics diagnostics(errs(), {DiagnosticFormat::Text, sys::Process::StandardErrHasColors(), false}, "ptc");
  diagnostics.report(found.takeError());
  return diagnostics.exitCode();
}

int ptc::runProgram(int argc, char **argv, const CompilerParts &parts) {
  Crash crash;
  crash.install();
  Arguments expanded = expandArguments(argc, argv);
  std::vector<std::string> &arguments = expanded.words;
  if (arguments.empty() || is_contained({"--help", "-h", "help"}, arguments.front())) {
    printVerbs(arguments.empty() ? errs() : outs());
    return arguments.empty() ? exitUsage : exitOk;
  }
  constexpr std::pair<StringRef, StringRef> places[] = {
      {"--mk", "share/ptc/ptc.mk"}, {"--cmake", "share/cmake/ptc"}, {"--include", "include"}};
  const auto *place = llvm::find_if(places, [&](const auto &row) { return row.first == arguments.front(); });
  if (place != std::end(places)) {
    if (arguments.size() == 1)
      return printIntegration(place->second, argv[0]);
    Diagnostics diagnostics(errs(), {DiagnosticFormat::Text, sys::Process::StandardErrHasColors(), false}, "ptc");
    diagnostics.error(exitUsage, "unexpected argument '" + arguments[1] + "'", arguments.front() + " stands alone");
    return exitUsage;
  }
  if (arguments.front() == "--version")
    arguments.front() = "version";
  std::string name = arguments.front();
  arguments.erase(arguments.begin());
  for (const VerbRow &verb : getVerbs())
    if (verb.name == name)
      return runVerb(verb, std::move(expanded), argv[0], crash, parts);

  std::vector<std::string> names;
  for (const VerbRow &verb : getVerbs())
    names.push_back(verb.name.str());
  Diagnostics diagnostics(errs(), {DiagnosticFormat::Text, sys::Process::StandardErrHasColors(), false}, "ptc");
  diagnostics.error(exitUsage, "unknown verb '" + name + "'", suggest(name, names, "`ptc --help` lists the verbs"));
  return exitUsage;
}
