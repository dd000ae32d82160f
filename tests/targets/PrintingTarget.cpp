//===- PrintingTarget.cpp - kernels as pseudo-code ------------------------===//
#include "tests/targets/PrintingTarget.h"
#include "ir/loop/WrappedIndices.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ptc;

namespace {

/// The text of one kernel. Buffers are called a0, a1, ... (arguments) and b0, ... (its own), values t0, t1, ...
class Printer {
public:
  Printer(loop::KernelOp kernel) : kernel(kernel), os(text) {}
  std::string print();

private:
  raw_ostream &line() { return os.indent(2 * depth); }
  std::string name(Value value) { return names.lookup(value); }
  std::string list(ValueRange values);
  std::string dims(ArrayRef<Expr> domain, size_t from, size_t to);
  std::string access(Value buffer, ArrayAttr indices, ValueRange operands);
  void declare(Operation *op, const Twine &what);
  void printNode(Operation *node);
  void printRegion(StringRef title, Region &region);
  void printBlock(Block &block);
  void printOp(Operation *op);

  loop::KernelOp kernel;
  std::string text;
  llvm::raw_string_ostream os;
  unsigned depth = 0, values = 0;
  llvm::DenseMap<Value, std::string> names;
};

} // namespace

std::string Printer::list(ValueRange operands) {
  return llvm::join(llvm::map_range(operands, [&](Value v) { return name(v); }), ", ");
}

std::string Printer::dims(ArrayRef<Expr> domain, size_t from, size_t to) {
  std::string result;
  for (size_t dim = from; dim < to; ++dim)
    result += (result.empty() ? "d" : ", d") + std::to_string(dim) + " < " + domain[dim].str();
  return result;
}

// v$0, v$1, ... of an indirect access are shown as the values they stand for.
static Expr withNames(Expr expr, ArrayRef<std::string> operands) {
  return expr.substitute([&](StringRef symbol) -> Expr {
    unsigned number;
    if (!symbol.consume_front("v$") || symbol.getAsInteger(10, number))
      return {};
    return Expr::symbol(expr.getContext(), operands[number]);
  });
}

std::string Printer::access(Value buffer, ArrayAttr indices, ValueRange operands) {
  SmallVector<std::string> used = llvm::map_to_vector(operands, [&](Value v) { return name(v); });
  return name(buffer) + "[" + withNames(Expr(cast<ExprAttr>(indices[0])), used).str() + "]";
}

void Printer::declare(Operation *op, const Twine &what) {
  std::string result = "t" + std::to_string(values++);
  line() << result << " = " << what << '\n';
  names[op->getResult(0)] = result;
}

void Printer::printOp(Operation *op) {
  if (auto load = dyn_cast<loop::LoadOp>(op))
    return declare(op, access(load.getBuffer(), load.getIndices(), load.getIndexOperands()));
  if (auto store = dyn_cast<loop::StoreOp>(op)) {
    line() << access(store.getBuffer(), store.getIndices(), store.getIndexOperands());
    if (store.getCombine())
      os << ' ' << prim::stringifyReduceKind(*store.getCombine());
    os << " = " << name(store.getValue()) << '\n';
    return;
  }
  if (auto index = dyn_cast<loop::IndexOp>(op)) {
    SmallVector<std::string> used = llvm::map_to_vector(index.getOperands(), [&](Value v) { return name(v); });
    return declare(op, withNames(index.getExpr(), used).str());
  }
  if (auto check = dyn_cast<loop::CheckIndexOp>(op))
    return declare(op, "check " + name(check.getIndex()) + " in " + check.getExtent().str() +
                           (loop::wraps(check) ? " wraps" : ""));
  if (auto reduce = dyn_cast<loop::ReduceOp>(op))
    return declare(op, prim::stringifyReduceKind(reduce.getKind()) + " of all " + name(reduce.getValue()));
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    std::string value;
    llvm::raw_string_ostream(value) << constant.getValue();
    return declare(op, value);
  }
  if (auto masked = dyn_cast<loop::MaskedOp>(op)) {
    line() << "where";
    for (Attribute condition : masked.getConditions())
      os << ' ' << Expr(cast<ExprAttr>(condition)) << " >= 0";
    os << '\n';
    printRegion("", masked.getBody());
    return declare(op, "that, or else " + name(masked.getOther()));
  }
  std::string what = op->getName().stripDialect().str();
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    what += " " + arith::stringifyCmpIPredicate(compare.getPredicate()).str();
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    what += " " + arith::stringifyCmpFPredicate(compare.getPredicate()).str();
  declare(op, what + " " + list(op->getOperands()));
}

void Printer::printBlock(Block &block) {
  for (Operation &op : block) {
    if (auto yield = dyn_cast<loop::YieldOp>(op))
      line() << "gives " << name(yield.getValue()) << '\n';
    else
      printOp(&op);
  }
}

void Printer::printRegion(StringRef title, Region &region) {
  if (!title.empty())
    line() << title;
  for (BlockArgument argument : region.getArguments()) {
    names[argument] = "t" + std::to_string(values++);
    os << ' ' << names[argument];
  }
  if (!title.empty())
    os << '\n';
  ++depth;
  printBlock(region.front());
  --depth;
}

void Printer::printNode(Operation *node) {
  SmallVector<Expr> domain = loop::getDomain(node);
  size_t shared = kernel.getParallel(), kept = domain.size();
  if (auto reduction = dyn_cast<loop::ReductionOp>(node))
    kept -= reduction.getReduced();
  line() << node->getName().stripDialect();
  if (shared < kept)
    os << ' ' << dims(domain, shared, kept);
  if (kept < domain.size())
    os << " over " << dims(domain, kept, domain.size());
  os << '\n';
  for (Region &region : node->getRegions())
    printRegion(node->getNumRegions() > 1 ? "part" : "", region);
}

std::string Printer::print() {
  os << "kernel " << kernel.getSymName() << '\n';
  ++depth;
  for (auto [index, argument] : llvm::enumerate(kernel.getBlock().getArguments())) {
    names[argument] = "a" + std::to_string(index);
    bool isWritten = llvm::is_contained(kernel.getArgumentsWritten(), int64_t(index));
    line() << (isWritten ? "writes " : "reads ") << names[argument] << ": "
           << cast<loop::BufferType>(argument.getType()).getElementType() << '\n';
  }
  line() << "in parallel for " << Expr(kernel.getIterationsAttr()) << " iterations\n";
  unsigned locals = 0;
  for (Operation &op : kernel.getBlock()) {
    if (auto buffer = dyn_cast<loop::BufferOp>(op)) {
      auto type = cast<loop::BufferType>(buffer.getResult().getType());
      names[buffer.getResult()] = "b" + std::to_string(locals++);
      line() << "keeps " << names[buffer.getResult()] << ": " << type.getElementCount() << " x "
             << type.getElementType() << '\n';
    } else if (loop::isNode(&op)) {
      printNode(&op);
    }
  }
  return std::move(text);
}

namespace {

class PrintingTarget : public codegen::Target {
public:
  const TargetInfo &getInfo() const override { return info; }
  llvm::Expected<codegen::Level> describeLevel(llvm::StringRef name) const override {
    return codegen::Level{name.str(), "", 0};
  }
  void loadDialects(MLIRContext &context) const override {}
  LogicalResult planKernel(loop::KernelOp kernel) const override {
    MLIRContext *context = kernel.getContext();
    Expr iterations = Expr::constant(context, 1);
    for (Operation &op : kernel.getBlock())
      if (loop::isNode(&op)) {
        iterations = product(context, ArrayRef(loop::getDomain(&op)).take_front(kernel.getParallel()));
        break;
      }
    kernel.setIterationsAttr(iterations);
    kernel.setGrainAttr(Expr::constant(context, 1));
    kernel.setScratchAttr(Expr::constant(context, 0));
    kernel.setConfigAttr(DictionaryAttr::get(context));
    return success();
  }
  llvm::Expected<codegen::KernelCode> generateKernel(loop::KernelOp kernel, llvm::StringRef level,
                                                     const codegen::CodeOptions &) const override {
    codegen::KernelCode code{.kernel = kernel.getSymName().str(), .level = level.str()};
    code.assembly = Printer(kernel).print();
    return code;
  }

private:
  static constexpr llvm::StringRef levels[] = {"paper"};
  static constexpr llvm::StringRef outputs[] = {"asm"};
  const TargetInfo info = {
      .name = "printing", .levels = levels, .levelFlag = "", .outputs = outputs, .assemblySuffix = ".txt"};
};

} // namespace

const codegen::Target &test::getPrintingTarget() {
  static const PrintingTarget target;
  return target;
}
