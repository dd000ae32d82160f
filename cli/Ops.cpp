// ptc ops: the ONNX operators that can be compiled, from the importer's own table.
#include "cli/Verb.h"
#include "compiler/Capabilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace ptc {

static StringRef domainOf(const SupportedOperator &op) { return op.domain.empty() ? "ai.onnx" : op.domain; }

static Error listOperators(Session &session, bool json) {
  std::vector<SupportedOperator> operators = supportedOperators();
  if (!json) {
    session.out << left_justify("operator", 28) << left_justify("domain", 20) << "oldest version\n";
    for (const SupportedOperator &op : operators)
      session.out << left_justify(op.name, 28) << left_justify(domainOf(op), 20) << op.oldest << '\n';
    session.out << operators.size() << " operators; operators with a function body of these are compiled too\n";
    return Error::success();
  }
  json::Array list;
  for (const SupportedOperator &op : operators)
    list.push_back(json::Object{{"name", op.name}, {"domain", domainOf(op)}, {"oldest_version", op.oldest}});
  session.out << formatv("{0:2}\n", json::Value(json::Object{{"operators", std::move(list)}}));
  return Error::success();
}

Action declareOps(CLI::App &app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "print JSON");
  return [json](Session &session) { return listOperators(session, *json); };
}

} // namespace ptc
