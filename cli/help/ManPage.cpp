// Manual pages in the macros of man(7), which groff, mandoc and every converter read. A page has no date: it describes
// a version, and equal versions give equal bytes.
#include "cli/help/ManPage.h"
#include "compiler/DiagnosticRendering.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace ptc {

namespace {
struct ExitRow {
  ExitCode code;
  StringLiteral meaning;
};
} // namespace

static constexpr ExitRow exitRows[] = {
    {exitOk, "Success."},
    {exitDifference, "A difference was found, by verify or gate."},
    {exitUsage, "The command line is wrong."},
    {exitInvalidModel, "The model is invalid."},
    {exitUnsupported, "The model is valid, but not supported; all reasons are listed."},
    {exitTarget, "A problem of the target or device."},
    {exitFile, "A problem with a file or the disk."},
    {exitRunFailure, "A model failed while it ran."},
    {exitLimit, "A limit of resources."},
    {exitInternal, "A defect of ptc: please report it."},
    {exitNoDevice, "Skipped: there is no such device."},
};

/// Text that roff prints as it is written: hyphens that can be copied, no macro at a line's start.
static std::string plain(StringRef text) {
  std::string result;
  bool isLineStart = true;
  for (char c : text) {
    if (isLineStart && (c == '.' || c == '\''))
      result += "\\&";
    isLineStart = c == '\n';
    switch (c) {
    case '\\':
      result += "\\e";
      break;
    case '-':
      result += "\\-";
      break;
    case '\'':
      result += "\\(aq";
      break;
    case '`':
      result += "\\(ga";
      break;
    case '~':
      result += "\\(ti";
      break;
    case '^':
      result += "\\(ha";
      break;
    default:
      result += c;
    }
  }
  return result;
}

static std::string bold(StringRef text) { return "\\fB" + plain(text) + "\\fR"; }
static std::string italic(StringRef text) { return "\\fI" + plain(text) + "\\fR"; }

static void printHead(raw_ostream &os, StringRef page, StringRef summary) {
  os << ".TH " << plain(page.upper()) << " 1 \"\" \"ptc " PTC_VERSION "\" \"ptc\"\n.SH NAME\n"
     << plain(page) << " \\- " << plain(summary) << '\n';
}

static void printFlag(raw_ostream &os, const FlagShape &flag) {
  std::vector<std::string> names;
  for (StringRef name : flag.names)
    names.push_back(bold(name) +
                    (!flag.takesValue ? "" : (name.starts_with("--") ? "=" : " ") + italic(flag.valueName)));
  if (names.empty())
    names.push_back(italic(flag.valueName));
  os << ".TP\n" << join(names, ", ") << '\n' << plain(flag.help);
  if (flag.values.kind == ValueShape::Kind::Words) {
    auto words = map_range(flag.values.words, [](StringRef word) { return bold(word); });
    os << "\n.br\n" << (flag.values.isList ? "Any of: " : "One of: ") << join(words, ", ");
  }
  os << '\n';
}

static void printFlags(raw_ostream &os, const VerbShape &verb) {
  std::vector<std::string> groups;
  for (const FlagShape *flag : verb.select(/*named=*/true))
    if (!is_contained(groups, flag->group))
      groups.push_back(flag->group);
  for (const std::string &group : groups) {
    if (groups.size() > 1 && !StringRef(group).equals_insensitive("options"))
      os << ".SS " << plain(group) << '\n';
    for (const FlagShape *flag : verb.select(/*named=*/true))
      if (flag->group == group)
        printFlag(os, *flag);
  }
}

static void printSynopsis(raw_ostream &os, const VerbShape &verb) {
  os << bold("ptc " + verb.name) << " [" << italic("FLAGS") << ']';
  for (const FlagShape *argument : verb.select(/*named=*/false))
    os << ' ' << (argument->isRequired ? "" : "[") << italic(argument->valueName) << (argument->isRequired ? "" : "]");
  os << '\n';
}

/// Examples are lines of a command and, behind two blanks or more, what it does.
static void printExamples(raw_ostream &os, StringRef examples) {
  os << ".SH EXAMPLES\n";
  for (StringRef line : split(examples.rtrim('\n'), '\n')) {
    line = line.trim();
    size_t gap = line.find("  ");
    os << ".TP\n" << bold(line.substr(0, gap)) << '\n';
    os << (gap == StringRef::npos ? "\\&" : plain(line.substr(gap).trim())) << '\n';
  }
}

void printManPage(raw_ostream &os, const VerbShape &verb) {
  printHead(os, "ptc-" + verb.name, verb.summary);
  os << ".SH SYNOPSIS\n";
  if (verb.parts.empty())
    printSynopsis(os, verb);
  for (const VerbShape &part : verb.parts) {
    printSynopsis(os, part);
    os << (&part == &verb.parts.back() ? "" : ".br\n");
  }
  if (std::vector<const FlagShape *> arguments = verb.select(/*named=*/false); !arguments.empty()) {
    os << ".SH ARGUMENTS\n";
    for (const FlagShape *argument : arguments)
      printFlag(os, *argument);
  }
  for (const VerbShape &part : verb.parts) {
    os << ".SH " << plain(StringRef("ptc " + part.name).upper()) << '\n' << plain(part.summary) << ".\n";
    for (const FlagShape *argument : part.select(/*named=*/false))
      printFlag(os, *argument);
    printFlags(os, part);
  }
  os << ".SH OPTIONS\n";
  printFlags(os, verb);
  if (!verb.examples.empty())
    printExamples(os, verb.examples);
  os << ".SH SEE ALSO\n" << bold("ptc") << "(1) for exit codes and the other verbs\n";
}

void printManPage(raw_ostream &os, ArrayRef<VerbShape> verbs) {
  printHead(os, "ptc", "ahead-of-time compiler from ONNX models to shared libraries");
  os << ".SH SYNOPSIS\n"
     << bold("ptc") << ' ' << italic("VERB") << " [" << italic("FLAGS") << "] [" << italic("ARGUMENTS")
     << "]\n.SH DESCRIPTION\n"
     << "ptc compiles an ONNX model to a library that holds its weights, a thread pool and code for several CPU "
        "levels,\n"
     << "with a C header and a manifest beside it. Other verbs run, measure, check and explain models and "
        "libraries.\n.PP\n"
     << bold("@FILE") << " stands for the arguments in FILE. No environment variable changes what is written.\n"
     << ".SH OPTIONS\n.TP\n"
     << bold("--help") << ", " << bold("--version") << "\nlist the verbs; tell the version\n"
     << ".TP\n"
     << bold("--mk") << "\nprint the path of the file to include in a Makefile\n"
     << ".TP\n"
     << bold("--cmake") << "\nprint the folder of the CMake package\n.TP\n"
     << bold("--include") << "\nprint the folder of the headers, ptc/abi.h and its companions\n.SH VERBS\n";
  for (const VerbShape &verb : verbs)
    os << ".TP\n"
       << bold("ptc " + verb.name) << '\n'
       << plain(verb.summary) << ";\n"
       << bold("ptc-" + verb.name) << "(1)\n";
  os << ".SH EXIT STATUS\nIf several things are wrong, the largest code is returned.\n";
  for (const ExitRow &row : exitRows)
    os << ".TP\n" << bold(std::to_string(row.code)) << '\n' << plain(row.meaning) << '\n';
  os << ".SH SEE ALSO\n";
  for (const VerbShape &verb : verbs)
    os << bold("ptc-" + verb.name) << (&verb == &verbs.back() ? "(1)\n" : "(1),\n");
}

} // namespace ptc
