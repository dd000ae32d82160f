// Random programs of loops and branches, nested, are run twice at once: as they are, with memory of its own for every
// buffer, and as they are planned, in the arena and the arguments. Whatever is read must be the same in both, at all
// sizes and numbers of rounds, and so must the outputs.
#include "compiler/memory/Passes.h"
#include "ir/loop/Loop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/DenseMap.h"
#include <array>
#include <catch2/catch.hpp>
#include <random>

using namespace ptc;
using namespace ptc::loop;

namespace {

/// Extents of buffers; launches compute on buffers of one extent.
const std::vector<std::string> extents = {"16", "48", "16*n"};

/// The text of a random program. Values are kept by extent; a region sees those of the regions around it.
class ProgramWriter {
public:
  explicit ProgramWriter(unsigned seed) : random(seed) {}

  std::string write() {
    for (size_t i = 0; i < extents.size(); ++i)
      values[i] = {"%x" + std::to_string(i)};
    block(0, 8);
    for (size_t i = 0; i < extents.size(); ++i)
      launch("%y" + std::to_string(i), i);
    std::string kernels;
    for (const char *index : {"d0", "s0 - d0 - 1"}) {
      std::string memory = "!loop.buffer<[s0] x f32, <[0]>>", name = *index == 'd' ? "same" : "back";
      kernels += "loop.kernel @" + name + "(%a: " + memory + ", %b: " + memory + ", %c: " + memory +
                 ") attributes {symbols = [\"s0\"], parallel = 1, arguments_written = array<i64: 2>} {\n"
                 "loop.pointwise [s0] {\n%0 = loop.load %a [" +
                 index +
                 "] : <[s0] x f32, <[0]>>\n"
                 "%1 = loop.load %b [d0] : <[s0] x f32, <[0]>>\n%2 = arith.addf %0, %1 : f32\n"
                 "loop.store %2, %c [d0] : <[s0] x f32, <[0]>>\n}\n}\n";
    }
    std::string arguments, symbols = "n = #prim.symbol<1, 64, divisor = 1, hint = 4>";
    for (const char *side : {"%x", "%y"})
      for (size_t i = 0; i < extents.size(); ++i)
        arguments += (arguments.empty()          ? ""
                      : side[1] == 'y' && i == 0 ? " | "
                                                 : ", ") +
                     std::string(side) + std::to_string(i) + ": " + type(extents[i]);
    for (unsigned i = 0; i < loops; ++i)
      symbols += ", u" + std::to_string(i) + " = #prim.symbol<0, 64, divisor = 1, hint = 0>";
    return kernels + "loop.program @p(" + arguments +
           ") attributes {aliases = array<i64>, guards = [], input_names = [\"a\", \"b\", \"c\"], "
           "input_types = [f32, f32, f32], output_names = [\"d\", \"e\", \"f\"], output_types = [f32, f32, f32], "
           "symbol_sources = {}, symbols = {" +
           symbols +
           "}} {\n%go = loop.constant dense<true> : tensor<i1> : "
           "<[] x i1, <[]>>\n" +
           text + "}\n";
  }

private:
  unsigned pick(unsigned below) { return random() % below; }
  static std::string type(const std::string &extent) { return "!loop.buffer<[" + extent + "] x f32, <[0]>>"; }
  std::string fresh() { return "%v" + std::to_string(names++); }

  void launch(const std::string &to, size_t extent) {
    auto from = [&] { return values[extent][pick(unsigned(values[extent].size()))]; };
    std::string memory = type(extents[extent]);
    text += std::string("loop.launch @") + (pick(2) ? "same" : "back") + "(" + from() + ", " + from() + ", " + to +
            ") symbols [" + extents[extent] + "] : " + memory + ", " + memory + ", " + memory + "\n";
  }

  std::string buffer(const std::string &extent) {
    std::string name = fresh();
    text += name + " = loop.buffer : <[" + extent + "] x f32, <[0]>>\n";
    return name;
  }

  std::string part(const std::string &whole, const std::string &wholeExtent, const std::string &offset, size_t extent) {
    std::string name = fresh();
    text += name + " = loop.part " + whole + " from " + offset + " : <[" + wholeExtent + "] x f32, <[0]>> -> <[" +
            extents[extent] + "] x f32, <[0]>>\n";
    return name;
  }

  void block(unsigned depth, unsigned steps) {
    for (unsigned step = 0; step < steps; ++step) {
      unsigned kind = depth < 3 ? pick(6) : 0;
      if (kind == 4)
        repeat(depth);
      else if (kind == 5)
        branch(depth);
      else
        compute(pick(unsigned(extents.size())));
    }
  }

  void compute(size_t extent) {
    std::string to = buffer(extents[extent]);
    launch(to, extent);
    values[extent].push_back(to);
  }

  /// A state and a stack of rows.
  void repeat(unsigned depth) {
    size_t extent = pick(unsigned(extents.size()));
    std::string one = extents[extent], both = "2*(" + one + ")", all = "3*(" + one + ")";
    std::string round = "u" + std::to_string(loops++), trips = std::to_string(pick(4));
    std::string state = buffer(both), rows = buffer(all);
    launch(part(state, both, "0", extent), extent);
    auto outer = values;
    text += "loop.repeat \"" + round + "\" below " + trips + " {\n";
    values[extent].push_back(part(state, both, "mod(" + round + ", 2)*(" + one + ")", extent));
    block(depth + 1, 1 + pick(4));
    launch(part(state, both, "mod(" + round + " + 1, 2)*(" + one + ")", extent), extent);
    launch(part(rows, all, round + "*(" + one + ")", extent), extent);
    text += "}\n";
    values = outer;
    values[extent].push_back(part(state, both, "mod(" + trips + ", 2)*(" + one + ")", extent));
    if (trips != "0")
      values[extent].push_back(
          part(rows, all, std::to_string(pick(unsigned(std::stoi(trips)))) + "*(" + one + ")", extent));
  }

  void branch(unsigned depth) {
    size_t extent = pick(unsigned(extents.size()));
    std::string result = buffer(extents[extent]);
    auto outer = values;
    text += "loop.if %go then {\n";
    block(depth + 1, 1 + pick(3));
    launch(result, extent);
    text += "} else {\n";
    values = outer;
    block(depth + 1, 1 + pick(3));
    launch(result, extent);
    text += "} : <[] x i1, <[]>>\n";
    values = outer;
    values[extent].push_back(result);
  }

  std::mt19937 random;
  std::string text;
  unsigned names = 0, loops = 0;
  std::array<std::vector<std::string>, 3> values;
};

/// Runs a program beside its plan. An element is the number of the write that made it.
class PlanRunner {
public:
  PlanRunner(ProgramOp program, ProgramOp plan, int64_t n, unsigned seed) : program(program), plan(plan), random(seed) {
    symbols["n"] = n;
    std::vector<LaunchOp> planned;
    plan.walk([&](LaunchOp launch) { planned.push_back(launch); });
    program.walk([&](LaunchOp launch) { plannedOf[launch] = planned[plannedOf.size()]; });
  }

  /// What differs, or nothing.
  std::string run() {
    arena.assign(size_t(*plan.getArena()->evaluate(symbols)) / 4, 0);
    for (auto [argument, planned] : llvm::zip_equal(program.getBlock().getArguments(), plan.getBlock().getArguments()))
      arguments[planned] = *own(argument).first;
    runBlock(program.getBlock());
    for (auto [output, planned] : llvm::zip_equal(program.getOutputArgs(), plan.getOutputArgs()))
      if (arguments[planned] != *own(output).first && difference.empty())
        difference = "output " + std::to_string(planned.getArgNumber());
    return difference;
  }

private:
  int64_t evaluate(Expr expr) { return *expr.evaluate(symbols); }

  /// Own memory of what the value shows, and where in it.
  std::pair<std::vector<uint64_t> *, int64_t> own(mlir::Value value) {
    int64_t offset = 0;
    while (auto part = value.getDefiningOp<PartOp>()) {
      offset += evaluate(part.getOffset());
      value = part.getBuffer();
    }
    auto [found, isNew] = memory.try_emplace(value);
    if (isNew) {
      auto size = size_t(evaluate(mlir::cast<BufferType>(value.getType()).getElementCount()));
      found->second =
          std::make_unique<std::vector<uint64_t>>(size, mlir::isa<mlir::BlockArgument>(value) ? ++writes : 0);
    }
    return {found->second.get(), offset};
  }

  /// The element where the plan has it.
  uint64_t &planned(mlir::Value value, int64_t index) {
    while (auto part = value.getDefiningOp<PartOp>()) {
      index += evaluate(part.getOffset());
      value = part.getBuffer();
    }
    auto at = value.getDefiningOp<AtOp>();
    return at ? arena[size_t(evaluate(at.getOffset()) / 4 + index)] : arguments.find(value)->second[size_t(index)];
  }

  void runBlock(mlir::Block &block) {
    for (auto buffer : block.getOps<BufferOp>())
      memory.erase(buffer.getResult()); // of this round
    for (mlir::Operation &op : block) {
      if (auto launch = mlir::dyn_cast<LaunchOp>(op))
        runLaunch(launch, plannedOf.at(launch));
      else if (auto branch = mlir::dyn_cast<IfOp>(op))
        runBlock((random() % 2 ? branch.getThenRegion() : branch.getElseRegion()).front());
      else if (auto repeat = mlir::dyn_cast<RepeatOp>(op))
        for (int64_t round = 0; round < evaluate(*repeat.getTrips()); ++round) {
          symbols[repeat.getCounter()] = round;
          runBlock(repeat.getBlock());
        }
    }
  }

  void runLaunch(LaunchOp launch, LaunchOp plannedLaunch) {
    int64_t size = evaluate(prim::getExprs(launch.getSymbols())[0]);
    bool isBack = launch.getKernel() == "back";
    for (int64_t i = 0; i < size; ++i) {
      read(launch, plannedLaunch, 0, isBack ? size - 1 - i : i);
      read(launch, plannedLaunch, 1, i);
      ++writes;
      auto [memory, offset] = own(launch.getBuffers()[2]);
      (*memory)[size_t(offset + i)] = writes;
      planned(plannedLaunch.getBuffers()[2], i) = writes;
    }
  }

  void read(LaunchOp launch, LaunchOp plannedLaunch, unsigned operand, int64_t index) {
    auto [memory, offset] = own(launch.getBuffers()[operand]);
    bool isSame = planned(plannedLaunch.getBuffers()[operand], index) == (*memory)[size_t(offset + index)];
    if (!isSame && difference.empty())
      llvm::raw_string_ostream(difference) << "operand " << operand << ", element " << index << " of " << plannedLaunch;
  }

  ProgramOp program, plan;
  llvm::DenseMap<mlir::Operation *, LaunchOp> plannedOf;
  std::mt19937 random;
  SymbolValues symbols;
  std::vector<uint64_t> arena;
  llvm::DenseMap<mlir::Value, std::vector<uint64_t>> arguments; // of the plan
  llvm::DenseMap<mlir::Value, std::unique_ptr<std::vector<uint64_t>>> memory;
  uint64_t writes = 0;
  std::string difference;
};

} // namespace

TEST_CASE("no round of a loop and no branch loses a value that is read later") {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<LoopDialect, prim::PrimDialect, mlir::arith::ArithDialect>();
  unsigned reused = 0, overOutputs = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::string text = ProgramWriter(seed).write();
    INFO("seed " << seed << "\n" << text);
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    REQUIRE(module);
    mlir::OwningOpRef<mlir::ModuleOp> plain = module->clone();
    mlir::PassManager passes(&context);
    passes.addPass(createPlanMemory());
    REQUIRE(mlir::succeeded(passes.run(*module)));
    auto program = *module->getOps<ProgramOp>().begin();
    int64_t all = 0;
    SymbolValues hints = prim::getSymbolHints(program.getSymbols());
    program.walk([&](AtOp at) {
      auto type = mlir::cast<BufferType>(at.getResult().getType());
      all += *type.getElementCount().evaluate(hints) * type.getElementBytes();
    });
    reused += *program.getArena()->evaluate(hints) < all;
    for (mlir::BlockArgument output : program.getOutputArgs())
      overOutputs += !output.hasOneUse();
    for (int64_t n : {1, 3})
      CHECK(PlanRunner(*plain->getOps<ProgramOp>().begin(), program, n, seed).run() == "");
  }
  CHECK(reused > 150); // bytes are shared at all
  CHECK(overOutputs > 20);
}
