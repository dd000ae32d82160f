// ptc ops: the ONNX operators that can be compiled, with versions and types, from the importer's own tables.
#include "cli/Verb.h"
#include "compiler/Capabilities.h"
#include "compiler/DiagnosticRendering.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace ptc {

namespace {
struct OpsOptions {
  std::string name;
  bool types = false, json = false;
};
} // namespace

static StringRef domainOf(const ImportedOperator &op) {
  return op.domain.empty() ? StringRef("ai.onnx") : StringRef(op.domain);
}

/// "tensor(float)" as "float"; sequences and optionals as the schema has them.
static std::string shortName(StringRef type) {
  StringRef rest = type;
  return rest.consume_front("tensor(") && rest.consume_back(")") ? rest.str() : type.str();
}

/// The types of the first input: what tables call the types of an operator.
static std::vector<std::string> mainTypes(const OperatorVersion &version) {
  if (version.inputs.empty())
    return {};
  auto found = version.types.find(version.inputs.front());
  if (found == version.types.end())
    return {shortName(version.inputs.front())};
  std::vector<std::string> names;
  for (const std::string &type : found->second)
    names.push_back(shortName(type));
  return names;
}

static std::string versionsOf(const ImportedOperator &op) {
  std::vector<std::string> versions;
  for (const OperatorVersion &version : op.versions)
    versions.push_back(std::to_string(version.since));
  return versions.empty() ? std::to_string(op.oldest) : join(versions, ", ");
}

static void printTypes(raw_ostream &os, const ImportedOperator &op) {
  if (op.versions.empty()) {
    os << "    no schema says which; a model's are tried\n";
    return;
  }
  const OperatorVersion &newest = op.versions.back();
  for (const auto &[constraint, types] : newest.types) {
    std::vector<std::string> names;
    for (const std::string &type : types)
      names.push_back(shortName(type));
    os << "    " << constraint << ": " << join(names, ", ") << '\n';
  }
}

static json::Value describe(const ImportedOperator &op) {
  json::Array versions;
  for (const OperatorVersion &version : op.versions) {
    json::Object types;
    for (const auto &[constraint, list] : version.types)
      types[constraint] = json::Array(list);
    versions.push_back(json::Object{{"since", version.since},
                                    {"by_function_body", version.isFunction},
                                    {"inputs", json::Array(version.inputs)},
                                    {"types", std::move(types)}});
  }
  return json::Object{
      {"name", op.name}, {"domain", domainOf(op)}, {"oldest_version", op.oldest}, {"versions", std::move(versions)}};
}

static json::Value describeTargets() {
  json::Array targets;
  for (const SupportedTarget &target : supportedTargets())
    targets.push_back(
        json::Object{{"name", target.name}, {"types_on_host", json::Array(elementTypesOnHost(target.name))}});
  return targets;
}

static Error listAll(Session &session, const OpsOptions &options) {
  std::vector<ImportedOperator> operators = listOperators();
  if (!options.name.empty())
    llvm::erase_if(operators, [&](const ImportedOperator &op) { return op.name != options.name; });
  if (operators.empty())
    return exitError(exitUnsupported, "operator '" + options.name + "' is not supported",
                     "`ptc ops` lists those that are; `ptc compile --custom-op` brings one of your own");
  if (options.json) {
    json::Array list;
    for (const ImportedOperator &op : operators)
      list.push_back(describe(op));
    session.out << formatv("{0:2}\n",
                           json::Value(json::Object{{"operators", std::move(list)}, {"targets", describeTargets()}}));
    return Error::success();
  }
  session.out << left_justify("operator", 34) << left_justify("domain", 26) << left_justify("versions", 40)
              << "types of the first input\n";
  for (const ImportedOperator &op : operators) {
    std::vector<std::string> types = op.versions.empty() ? std::vector<std::string>() : mainTypes(op.versions.back());
    session.out << left_justify(op.name, 34) << left_justify(domainOf(op), 26) << left_justify(versionsOf(op), 40)
                << (types.size() > 4 && !options.types ? std::to_string(types.size()) + " types" : join(types, ", "))
                << '\n';
    if (options.types)
      printTypes(session.out, op);
  }
  session.out << operators.size() << " operators\n";
  return Error::success();
}

Action declareOps(CLI::App &app) {
  auto options = std::make_shared<OpsOptions>();
  app.add_option("operator", options->name, "only this one")->type_name("NAME");
  app.add_flag("--types", options->types, "all types of the newest version, by constraint of the schema");
  app.add_flag("--json", options->json, "print JSON: all versions and types");
  return [options](Session &session) { return listAll(session, *options); };
}

} // namespace ptc
