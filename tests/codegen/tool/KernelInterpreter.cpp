#include "tests/codegen/tool/KernelInterpreter.h"
#include "ir/eval/Tensor.h"
#include "ir/loop/Recurrence.h"
#include "ir/loop/UnsignedStores.h"
#include "ir/loop/WrappedIndices.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace ptc;
using namespace ptc::test;

static int64_t bytesOf(Type type) { return loop::getElementBytes(type); }

int64_t Memory::size() const { return int64_t(bytes.size()) / bytesOf(type); }

Scalar Memory::get(int64_t index) const {
  int64_t width = bytesOf(type);
  if (index < 0 || (index + 1) * width > int64_t(bytes.size()))
    llvm::report_fatal_error("the kernel reads outside of a buffer");
  uint64_t bits = 0;
  memcpy(&bits, bytes.data() + index * width, size_t(width));
  if (auto floating = dyn_cast<FloatType>(type)) {
    uint64_t mask = floating.getWidth() == 64 ? ~uint64_t(0) : (uint64_t(1) << floating.getWidth()) - 1;
    return {eval::decodeFloat(bits & mask, floating), 0};
  }
  return {0, type.isInteger(1) ? int64_t(bits) : llvm::SignExtend64(bits, unsigned(width * 8))};
}

static double rounded(double value, Type type) { return eval::roundToType(value, cast<FloatType>(type)); }

void Memory::set(int64_t index, Scalar value) {
  int64_t width = bytesOf(type);
  if (index < 0 || (index + 1) * width > int64_t(bytes.size()))
    llvm::report_fatal_error("the kernel writes outside of a buffer");
  uint64_t bits = uint64_t(value.i);
  if (auto floating = dyn_cast<FloatType>(type))
    bits = eval::encodeFloat(value.f, floating);
  memcpy(bytes.data() + index * width, &bits, size_t(width));
}

namespace {

using Environment = llvm::DenseMap<Value, Scalar>;

class Interpreter {
public:
  Interpreter(loop::KernelOp kernel, std::vector<Memory> &buffers, const SymbolValues &symbols)
      : kernel(kernel), values(symbols) {
    for (auto [argument, memory] : llvm::zip_equal(kernel.getBlock().getArguments(), buffers))
      memories[argument] = &memory;
  }

  void run() {
    for (auto recurrence : kernel.getBlock().getOps<loop::RecurrenceOp>())
      return runRecurrence(recurrence);
    runNodes(kernel.getBlock(), kernel.getParallel());
  }
  bool failed = false;

private:
  /// What a state is now lies in the initial buffer, then in spare and final ones by turns, so that the last is final.
  void runRecurrence(loop::RecurrenceOp recurrence) {
    int64_t steps = evaluate(recurrence.getSteps(), none, {});
    for (int64_t step = 0; step < steps; ++step) {
      values[loop::RecurrenceOp::stepSymbol] = step;
      bool isFinal = (steps - step) % 2 == 1;
      for (unsigned state = 0; state < recurrence.getInitial().size(); ++state) {
        Memory *last = memories[recurrence.getFinals()[state]], *spare = memories[recurrence.getSpare()[state]];
        Memory *initial = memories[recurrence.getInitial()[state]];
        memories[recurrence.getNow(state)] = step == 0 ? initial : isFinal ? spare : last;
        memories[recurrence.getNext(state)] = isFinal ? last : spare;
      }
      for (auto stage : recurrence.getBody().getOps<loop::FusedOp>())
        runNodes(stage.getBody().front(), stage.getParallel());
    }
    if (steps == 0 && !recurrence.getOtherwise().empty())
      for (auto stage : recurrence.getOtherwise().getOps<loop::FusedOp>())
        runNodes(stage.getBody().front(), stage.getParallel());
  }

  /// Nodes of a block that share their first dims.
  void runNodes(Block &nodes, size_t parallel) {
    block = &nodes;
    shared = parallel;
    first = nullptr;
    for (auto buffer : nodes.getOps<loop::BufferOp>()) {
      auto type = cast<loop::BufferType>(buffer.getResult().getType());
      auto memory = std::make_unique<Memory>();
      memory->type = type.getElementType();
      memory->bytes.resize(size_t(*type.getElementCount().evaluate(values) * bytesOf(memory->type)));
      memories[buffer.getResult()] = memory.get();
      locals.push_back(std::move(memory));
    }
    for (Operation &op : nodes)
      if (loop::isNode(&op))
        first = first ? first : &op;
    // Nodes interleave per point of the shared dims: local buffers belong to it.
    if (first)
      sharedLoops(0);
  }

  int64_t evaluate(Expr expr, const Environment &env, ValueRange operands) {
    for (auto [index, operand] : llvm::enumerate(operands))
      values[Expr::operand(kernel.getContext(), unsigned(index)).getSymbol()] = env.lookup(operand).i;
    std::optional<int64_t> value = expr.evaluate(values);
    if (!value)
      llvm::report_fatal_error("an expression has an unknown symbol");
    return *value;
  }
  void setDim(size_t dim, int64_t value) { values["d" + std::to_string(dim)] = value; }

  void sharedLoops(size_t dim) {
    if (dim == shared) {
      for (Operation &op : *block)
        if (loop::isNode(&op))
          runNode(&op);
      return;
    }
    int64_t extent = evaluate(loop::getDomain(first)[dim], none, {});
    for (int64_t i = 0; i < extent; ++i) {
      setDim(dim, i);
      sharedLoops(dim + 1);
    }
  }

  void forDims(ArrayRef<Expr> domain, size_t from, size_t to, llvm::function_ref<void()> body) {
    if (from == to)
      return body();
    int64_t extent = evaluate(domain[from], none, {});
    for (int64_t i = 0; i < extent; ++i) {
      setDim(from, i);
      forDims(domain, from + 1, to, body);
    }
  }

  void runNode(Operation *op) {
    SmallVector<Expr> domain = loop::getDomain(op);
    size_t rank = domain.size();
    if (isa<loop::PointwiseOp, loop::ScatterOp>(op)) {
      forDims(domain, shared, rank, [&] {
        Environment env;
        runBlock(op->getRegion(0).front(), env);
      });
    } else if (auto reduction = dyn_cast<loop::ReductionOp>(op)) {
      size_t kept = rank - reduction.getReduced();
      forDims(domain, shared, kept, [&] { runReduction(reduction, domain, kept); });
    } else if (auto scan = dyn_cast<loop::ScanOp>(op)) {
      forDims(domain, shared, rank - 1, [&] { runScan(scan, domain); });
    } else if (auto sort = dyn_cast<loop::SortOp>(op)) {
      forDims(domain, shared, rank - 1, [&] { runSort(sort, domain); });
    } else if (auto greedy = dyn_cast<loop::GreedyOp>(op)) {
      forDims(domain, shared, rank - 1, [&] { runGreedy(greedy, domain); });
    } else {
      llvm::report_fatal_error("the interpreter has no templates");
    }
  }

  void runReduction(loop::ReductionOp op, ArrayRef<Expr> domain, size_t kept);
  void runScan(loop::ScanOp op, ArrayRef<Expr> domain);
  void runSort(loop::SortOp op, ArrayRef<Expr> domain);
  void runGreedy(loop::GreedyOp op, ArrayRef<Expr> domain);
  std::optional<Scalar> runBlock(Block &block, Environment &env);
  void runOp(Operation *op, Environment &env);
  Scalar arithmetic(Operation *op, const Environment &env);

  loop::KernelOp kernel;
  SymbolValues values;
  llvm::DenseMap<Value, Memory *> memories;
  std::vector<std::unique_ptr<Memory>> locals;
  // The nodes that run now.
  Block *block = nullptr;
  size_t shared = 0;
  Operation *first = nullptr;
  const Environment none;
};

} // namespace

static Scalar combine(prim::ReduceKind kind, Scalar a, Scalar b, Type type, bool isUnsigned) {
  bool isFloat = isa<FloatType>(type);
  unsigned bits = type.getIntOrFloatBitWidth();
  auto wrap = [&](int64_t v) { return bits == 1 ? v & 1 : llvm::SignExtend64(uint64_t(v), bits); };
  auto less = [&](Scalar x, Scalar y) {
    uint64_t m = bits == 64 ? ~0ull : (1ull << bits) - 1;
    return isFloat ? x.f < y.f : isUnsigned ? (uint64_t(x.i) & m) < (uint64_t(y.i) & m) : x.i < y.i;
  };
  switch (kind) {
  case prim::ReduceKind::Sum:
    return {a.f + b.f, wrap(int64_t(uint64_t(a.i) + uint64_t(b.i)))};
  case prim::ReduceKind::Prod:
    return {a.f * b.f, wrap(int64_t(uint64_t(a.i) * uint64_t(b.i)))};
  case prim::ReduceKind::Max:
    if (isFloat && (std::isnan(a.f) || std::isnan(b.f)))
      return {NAN, 0};
    return less(a, b) ? b : a;
  case prim::ReduceKind::Min:
    if (isFloat && (std::isnan(a.f) || std::isnan(b.f)))
      return {NAN, 0};
    return less(b, a) ? b : a;
  case prim::ReduceKind::Any:
    return {0, a.i | b.i};
  case prim::ReduceKind::All:
    return {0, a.i & b.i};
  }
  return {};
}

static Scalar identity(prim::ReduceKind kind, Type type, bool isUnsigned) {
  unsigned bits = type.getIntOrFloatBitWidth();
  bool isMax = kind == prim::ReduceKind::Max, isMin = kind == prim::ReduceKind::Min;
  int64_t low = isUnsigned ? 0 : bits == 64 ? INT64_MIN : -(int64_t(1) << (bits - 1));
  int64_t high = isUnsigned ? -1 : bits == 64 ? INT64_MAX : (int64_t(1) << (bits - 1)) - 1;
  int64_t unit = kind == prim::ReduceKind::Prod || kind == prim::ReduceKind::All;
  return {isMax ? -INFINITY : isMin ? INFINITY : double(unit), isMax ? low : isMin ? high : unit};
}

void Interpreter::runReduction(loop::ReductionOp op, ArrayRef<Expr> domain, size_t kept) {
  Block &block = op.getBody().front();
  Environment accumulators, indices;
  auto isReduce = [](Operation &inner) { return isa<loop::ReduceOp, loop::ArgReduceOp>(inner); };
  // What depends on a reduction runs afterwards.
  llvm::DenseSet<Operation *> late;
  for (Operation &inner : block) {
    if (auto reduce = dyn_cast<loop::ReduceOp>(inner))
      accumulators[reduce.getResult()] = identity(reduce.getKind(), reduce.getType(), reduce.getIsUnsigned());
    inner.walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && (late.contains(def) || isReduce(*def)))
          late.insert(&inner);
    });
  }
  llvm::DenseMap<Value, bool> started;
  forDims(domain, kept, domain.size(), [&] {
    Environment env;
    for (Operation &inner : block) {
      if (auto reduce = dyn_cast<loop::ReduceOp>(inner)) {
        Scalar &a = accumulators[reduce.getResult()];
        a = combine(reduce.getKind(), a, env.lookup(reduce.getValue()), reduce.getType(), reduce.getIsUnsigned());
      } else if (auto arg = dyn_cast<loop::ArgReduceOp>(inner)) {
        Scalar value = env.lookup(arg.getValue());
        Scalar &best = accumulators[arg.getResult()];
        bool isMax = arg.getKind() == prim::ArgKind::Max;
        Type type = arg.getValue().getType();
        auto kind = isMax ? prim::ReduceKind::Max : prim::ReduceKind::Min;
        bool take = !started[arg.getResult()];
        if (!take && isa<FloatType>(type) && (std::isnan(value.f) || std::isnan(best.f))) {
          take = std::isnan(value.f) && (!std::isnan(best.f) || arg.getSelectLast());
        } else if (!take) {
          Scalar winner = combine(kind, best, value, type, arg.getIsUnsigned());
          bool equal = value.f == best.f && value.i == best.i;
          take = equal ? arg.getSelectLast() : winner.f == value.f && winner.i == value.i;
        }
        if (take) {
          best = value;
          indices[arg.getResult()] = {0, values["d" + std::to_string(kept)]};
        }
        started[arg.getResult()] = true;
      } else if (!late.contains(&inner)) {
        runOp(&inner, env);
      }
    }
  });
  for (size_t dim = kept; dim < domain.size(); ++dim)
    setDim(dim, 0);
  Environment env;
  for (Operation &inner : block) {
    if (auto reduce = dyn_cast<loop::ReduceOp>(inner)) {
      Scalar value = accumulators[reduce.getResult()];
      if (isa<FloatType>(reduce.getType()))
        value.f = rounded(value.f, reduce.getType());
      env[reduce.getResult()] = value;
    } else if (auto arg = dyn_cast<loop::ArgReduceOp>(inner)) {
      env[arg.getResult()] = indices[arg.getResult()];
    } else if (late.contains(&inner) || (!isa<loop::StoreOp>(inner) && domain.size() != kept)) {
      bool isEmpty = false;
      for (size_t dim = kept; dim < domain.size(); ++dim)
        isEmpty |= evaluate(domain[dim], none, {}) == 0;
      if (late.contains(&inner) || !isEmpty)
        runOp(&inner, env);
    }
  }
}

void Interpreter::runScan(loop::ScanOp op, ArrayRef<Expr> domain) {
  Block &block = op.getBody().front();
  Environment states;
  for (auto running : block.getOps<loop::RunningOp>())
    states[running.getResult()] = identity(running.getKind(), running.getType(), running.getIsUnsigned());
  size_t last = domain.size() - 1;
  int64_t extent = evaluate(domain[last], none, {});
  for (int64_t i = 0; i < extent; ++i) {
    setDim(last, op.getReverse() ? extent - 1 - i : i);
    Environment env;
    for (Operation &inner : block) {
      auto running = dyn_cast<loop::RunningOp>(inner);
      if (!running) {
        runOp(&inner, env);
        continue;
      }
      Scalar &state = states[running.getResult()];
      Scalar next =
          combine(running.getKind(), state, env.lookup(running.getValue()), running.getType(), running.getIsUnsigned());
      env[running.getResult()] = running.getExclusive() ? state : next;
      state = next;
    }
  }
}

void Interpreter::runSort(loop::SortOp op, ArrayRef<Expr> domain) {
  size_t last = domain.size() - 1;
  int64_t extent = evaluate(domain[last], none, {});
  std::vector<std::pair<Scalar, int64_t>> keys;
  Type type;
  for (int64_t i = 0; i < extent; ++i) {
    setDim(last, i);
    Environment env;
    keys.push_back({*runBlock(op.getKey().front(), env), i});
  }
  type = op.getBody().front().getArgument(0).getType();
  auto less = [&](const Scalar &a, const Scalar &b) {
    if (isa<FloatType>(type))
      return std::isnan(b.f) ? !std::isnan(a.f) : a.f < b.f; // NaN above everything
    return op.getIsUnsigned() ? uint64_t(a.i) < uint64_t(b.i) : a.i < b.i;
  };
  std::stable_sort(keys.begin(), keys.end(), [&](const auto &a, const auto &b) {
    return op.getDescending() ? less(b.first, a.first) : less(a.first, b.first);
  });
  int64_t kept = evaluate(op.getKept(), none, {});
  for (int64_t rank = 0; rank < kept; ++rank) {
    setDim(last, rank);
    Environment env;
    env[op.getBody().front().getArgument(0)] = keys[size_t(rank)].first;
    env[op.getBody().front().getArgument(1)] = {0, keys[size_t(rank)].second};
    runBlock(op.getBody().front(), env);
  }
}

void Interpreter::runGreedy(loop::GreedyOp op, ArrayRef<Expr> domain) {
  size_t last = domain.size() - 1;
  int64_t extent = evaluate(domain[last], none, {});
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < extent; ++i) {
    setDim(last, i);
    auto ask = [&](Region &region, int64_t argument) {
      Environment env;
      env[region.front().getArgument(0)] = {0, argument};
      return runBlock(region.front(), env).value_or(Scalar()).i != 0;
    };
    bool isChosen = ask(op.getCandidate(), int64_t(chosen.size())) &&
                    llvm::none_of(chosen, [&](int64_t other) { return ask(op.getConflict(), other); });
    if (isChosen)
      chosen.push_back(i);
    ask(op.getBody(), isChosen);
  }
}

std::optional<Scalar> Interpreter::runBlock(Block &block, Environment &env) {
  for (Operation &op : block) {
    if (auto yield = dyn_cast<loop::YieldOp>(op))
      return env.lookup(yield.getValue());
    runOp(&op, env);
  }
  return std::nullopt;
}

void Interpreter::runOp(Operation *op, Environment &env) {
  if (auto load = dyn_cast<loop::LoadOp>(op)) {
    int64_t index = evaluate(Expr(cast<ExprAttr>(load.getIndices()[0])), env, load.getIndexOperands());
    env[load.getResult()] = memories.lookup(load.getBuffer())->get(index);
  } else if (auto store = dyn_cast<loop::StoreOp>(op)) {
    Memory *memory = memories.lookup(store.getBuffer());
    int64_t index = evaluate(Expr(cast<ExprAttr>(store.getIndices()[0])), env, store.getIndexOperands());
    Scalar value = env.lookup(store.getValue());
    if (auto kind = store.getCombine())
      value = combine(*kind, memory->get(index), value, store.getValue().getType(), loop::isUnsigned(store));
    memory->set(index, value);
  } else if (auto index = dyn_cast<loop::IndexOp>(op)) {
    env[index.getResult()] = {0, evaluate(index.getExpr(), env, index.getOperands())};
  } else if (auto check = dyn_cast<loop::CheckIndexOp>(op)) {
    int64_t value = env.lookup(check.getIndex()).i, extent = evaluate(check.getExtent(), env, {});
    value = loop::wraps(check) && value < 0 ? value + extent : value;
    failed |= value < 0 || value >= extent;
    env[check.getResult()] = {0, value < 0 || value >= extent ? 0 : value};
  } else if (auto masked = dyn_cast<loop::MaskedOp>(op)) {
    bool holds = llvm::all_of(masked.getConditions(), [&](Attribute condition) {
      return evaluate(Expr(cast<ExprAttr>(condition)), env, masked.getOperands_()) >= 0;
    });
    env[masked.getResult()] = holds ? *runBlock(masked.getBody().front(), env) : env.lookup(masked.getOther());
  } else {
    env[op->getResult(0)] = arithmetic(op, env);
  }
}

static bool compareFloats(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case arith::CmpFPredicate::OEQ:
    return !unordered && a == b;
  case arith::CmpFPredicate::OGT:
    return !unordered && a > b;
  case arith::CmpFPredicate::OGE:
    return !unordered && a >= b;
  case arith::CmpFPredicate::OLT:
    return !unordered && a < b;
  case arith::CmpFPredicate::OLE:
    return !unordered && a <= b;
  case arith::CmpFPredicate::ONE:
    return !unordered && a != b;
  case arith::CmpFPredicate::UNE:
    return unordered || a != b;
  case arith::CmpFPredicate::UNO:
    return unordered;
  case arith::CmpFPredicate::ORD:
    return !unordered;
  case arith::CmpFPredicate::UGT:
    return unordered || a > b;
  case arith::CmpFPredicate::UGE:
    return unordered || a >= b;
  case arith::CmpFPredicate::ULT:
    return unordered || a < b;
  case arith::CmpFPredicate::ULE:
    return unordered || a <= b;
  default:
    llvm::report_fatal_error("predicate");
  }
}

Scalar Interpreter::arithmetic(Operation *op, const Environment &env) {
  Type type = op->getResult(0).getType();
  auto in = [&](unsigned i) { return env.lookup(op->getOperand(i)); };
  Scalar a = op->getNumOperands() > 0 ? in(0) : Scalar(), b = op->getNumOperands() > 1 ? in(1) : Scalar();
  unsigned inputBits = op->getNumOperands() ? op->getOperand(0).getType().getIntOrFloatBitWidth() : 0;
  uint64_t inputMask = inputBits >= 64 ? ~0ull : (1ull << inputBits) - 1;
  auto real = [&](double v) -> Scalar { return {rounded(v, type), 0}; };
  auto whole = [&](int64_t v) -> Scalar {
    unsigned bits = type.getIntOrFloatBitWidth();
    return {0, bits == 1 ? v & 1 : llvm::SignExtend64(uint64_t(v), bits)};
  };
  return llvm::TypeSwitch<Operation *, Scalar>(op)
      .Case([&](arith::ConstantOp c) -> Scalar {
        if (auto f = dyn_cast<FloatAttr>(c.getValue()))
          return {f.getValueAsDouble(), 0};
        return whole(cast<IntegerAttr>(c.getValue()).getValue().getZExtValue());
      })
      .Case([&](arith::AddFOp) { return real(a.f + b.f); })
      .Case([&](arith::SubFOp) { return real(a.f - b.f); })
      .Case([&](arith::MulFOp) { return real(a.f * b.f); })
      .Case([&](arith::DivFOp) { return real(a.f / b.f); })
      .Case([&](arith::NegFOp) { return real(-a.f); })
      .Case([&](arith::MaximumFOp) { return combine(prim::ReduceKind::Max, a, b, type, false); })
      .Case([&](arith::MinimumFOp) { return combine(prim::ReduceKind::Min, a, b, type, false); })
      .Case([&](math::ExpOp) { return real(std::exp(a.f)); })
      .Case([&](math::LogOp) { return real(std::log(a.f)); })
      .Case([&](math::TanhOp) { return real(std::tanh(a.f)); })
      .Case([&](math::ErfOp) { return real(std::erf(a.f)); })
      .Case([&](math::SqrtOp) { return real(std::sqrt(a.f)); })
      .Case([&](math::RsqrtOp) { return real(1 / std::sqrt(a.f)); })
      .Case([&](math::AbsFOp) { return real(std::fabs(a.f)); })
      .Case([&](math::FloorOp) { return real(std::floor(a.f)); })
      .Case([&](arith::AddIOp) { return whole(int64_t(uint64_t(a.i) + uint64_t(b.i))); })
      .Case([&](arith::SubIOp) { return whole(int64_t(uint64_t(a.i) - uint64_t(b.i))); })
      .Case([&](arith::MulIOp) { return whole(int64_t(uint64_t(a.i) * uint64_t(b.i))); })
      .Case([&](arith::AndIOp) { return whole(a.i & b.i); })
      .Case([&](arith::OrIOp) { return whole(a.i | b.i); })
      .Case([&](arith::XOrIOp) { return whole(a.i ^ b.i); })
      .Case([&](arith::MaxSIOp) { return whole(std::max(a.i, b.i)); })
      .Case([&](arith::MinSIOp) { return whole(std::min(a.i, b.i)); })
      .Case([&](arith::CmpFOp c) -> Scalar { return {0, compareFloats(c.getPredicate(), a.f, b.f)}; })
      .Case([&](arith::CmpIOp c) -> Scalar {
        return {0, arith::applyCmpPredicate(c.getPredicate(), APInt(64, uint64_t(a.i)), APInt(64, uint64_t(b.i)))};
      })
      .Case([&](arith::SelectOp) { return a.i & 1 ? b : in(2); })
      .Case([&](arith::ExtFOp) { return a; })
      .Case([&](arith::BitcastOp) -> Scalar {
        Memory memory{op->getOperand(0).getType(), std::vector<char>(size_t(inputBits / 8))};
        memory.set(0, a);
        memory.type = type;
        return memory.get(0);
      })
      .Case([&](arith::TruncFOp) { return real(a.f); })
      .Case([&](arith::SIToFPOp) { return real(double(a.i)); })
      .Case([&](arith::UIToFPOp) { return real(double(uint64_t(a.i) & inputMask)); })
      .Case([&](arith::FPToSIOp) { return whole(int64_t(a.f)); })
      .Case([&](arith::ExtSIOp) { return whole(inputBits == 1 ? -a.i : a.i); })
      .Case([&](arith::ExtUIOp) { return whole(int64_t(uint64_t(a.i) & inputMask)); })
      .Case([&](arith::TruncIOp) { return whole(a.i); })
      .Default([&](Operation *unknown) -> Scalar {
        llvm::errs() << *unknown << "\n";
        llvm::report_fatal_error("the interpreter does not know an op");
      });
}

bool test::interpret(loop::KernelOp kernel, std::vector<Memory> &buffers, const SymbolValues &symbols) {
  Interpreter interpreter(kernel, buffers, symbols);
  interpreter.run();
  return !interpreter.failed;
}
