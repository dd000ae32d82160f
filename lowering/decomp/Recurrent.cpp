//===- Recurrent.cpp - RNN, GRU and LSTM as loops -------------------------===//
//
// The three operators share everything but the step: directions, initial states,
// sequence lengths, layout, clipping, activations. `run` makes one prim.loop for all
// directions, which do not know of each other; a round sees x[t] already multiplied
// by W for all time steps at once (one large product instead of many small ones),
// and multiplies the state by R itself. A sequence of one step needs no loop.
//
// Shapes (layout 0): X [time, batch, input], W [directions, gates*hidden, input],
// R [directions, gates*hidden, hidden], B [directions, 2*gates*hidden], states
// [directions, batch, hidden]; Y [time, directions, batch, hidden]. Layout 1 puts
// the batch first.
//
// The reverse direction runs over the products in reverse order, and its rows are
// turned around again. A sample whose sequence has ended keeps its state and yields
// zeros. The reverse direction of such a sample begins at its own last element. Of a
// sequence without elements the last state is the initial one: ONNX does not say what
// it is, its reference ignores lengths, and onnxruntime gives 0; but this is what no
// step leaves, and what the next piece of a stream has to begin with.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace ptc::prim;

namespace ptc::decomp {

namespace {

/// What there is, with the defaults of those that have parameters.
struct ActivationKind {
  llvm::StringLiteral name;
  std::optional<double> alpha = {}, beta = {};
};
constexpr ActivationKind activationKinds[] = {{"Sigmoid"},
                                              {"Tanh"},
                                              {"Relu"},
                                              {"Softsign"},
                                              {"Softplus"},
                                              {"Elu", 1.0},
                                              {"LeakyRelu", 0.01},
                                              {"ThresholdedRelu", 1.0},
                                              {"Affine", 1.0, 0.0},
                                              {"ScaledTanh", 1.0, 1.0},
                                              {"HardSigmoid", 0.2, 0.5}};

struct Activation {
  llvm::StringRef name;
  double alpha, beta;
};

/// What one direction works with.
struct Direction {
  Value inputProducts;  // [time, batch, gates*hidden], biases of W (and of R where they may be joined) added
  Value recurrence;     // R transposed: [hidden, gates*hidden]
  Value recurrenceBias; // [gates*hidden], or null
  Value peepholes;      // [3*hidden], or null
  llvm::ArrayRef<Activation> activations;
  bool isReverse;
};

struct State {
  Value hidden, cell; // [batch, hidden]
};

class Recurrence {
public:
  Recurrence(NodeContext &n, int64_t gates) : n(n), gates(gates) {}

  using Step = llvm::function_ref<State(const Direction &, Value inputProduct, State)>;
  Values run(llvm::ArrayRef<llvm::StringRef> defaultActivations, bool hasCell, bool joinsBiases, Step step);

  Value gate(Value product, int64_t index) { return n.sliceAxis(product, 1, n.expr(index * hidden), n.expr(hidden)); }
  Value clipped(Value x) { return clip ? n.clamp(x, -*clip, *clip) : x; }
  Value activate(const Activation &a, Value x);
  /// The state times the first `count` gates' part of R.
  Value recurrenceProduct(const Direction &d, Value h, int64_t count) {
    return n.matmul(h, count < gates ? n.sliceAxis(d.recurrence, 1, n.expr(0), n.expr(count * hidden)) : d.recurrence);
  }
  int64_t hidden = 0;

private:
  bool checkShapes();
  bool readActivations(llvm::ArrayRef<llvm::StringRef> defaults, size_t directions);
  Direction direction(size_t index, bool isReverse, bool joinsBiases);
  Value part(Value v, size_t direction) { return v ? n.at(v, 0, direction) : Value(); }
  Value initial(size_t input, size_t direction);
  Value flip(Value steps) { return n.sliceAxis(steps, 0, time - 1, time, -1); }
  Value mirror(Value steps);
  State runStep(const Direction &d, Expr round, Value inputProduct, State state, Step step, Value &row);
  Values runLoop(llvm::ArrayRef<Direction> directions, llvm::ArrayRef<State> states, Step step);
  Values finish(llvm::ArrayRef<Direction> directions, llvm::ArrayRef<Value> results);

  NodeContext &n;
  int64_t gates;
  Expr time;
  std::optional<double> clip;
  bool isBatchFirst = false, hasCell = false;
  Value x, lengths;
  std::vector<Activation> activations;
};

Value Recurrence::activate(const Activation &a, Value x) {
  if (a.name == "Sigmoid")
    return n.sigmoid(x);
  if (a.name == "Tanh")
    return n.tanh(x);
  if (a.name == "Relu")
    return n.relu(x);
  if (a.name == "Affine")
    return n.add(n.mul(x, a.alpha), a.beta);
  if (a.name == "LeakyRelu")
    return n.select(n.less(x, n.scalarLike(0, x)), n.mul(x, a.alpha), x);
  if (a.name == "ThresholdedRelu")
    return n.select(n.less(x, n.scalarLike(a.alpha, x)), n.scalarLike(0, x), x);
  if (a.name == "ScaledTanh")
    return n.mul(n.tanh(n.mul(x, a.beta)), a.alpha);
  if (a.name == "HardSigmoid")
    return n.clamp(n.add(n.mul(x, a.alpha), a.beta), 0, 1);
  if (a.name == "Elu")
    return n.select(n.less(x, n.scalarLike(0, x)), n.mul(n.unary<Expm1Op>(x), a.alpha), x);
  if (a.name == "Softsign")
    return n.div(x, n.add(n.abs(x), 1.0));
  if (a.name == "Softplus")
    return n.add(n.relu(x), n.unary<Log1pOp>(n.exp(n.neg(n.abs(x)))));
  llvm_unreachable("a kind of activation");
}

static std::string listActivations() {
  return "supported: " +
         llvm::join(llvm::map_range(activationKinds, [](const ActivationKind &kind) { return kind.name; }), ", ");
}

bool Recurrence::readActivations(llvm::ArrayRef<llvm::StringRef> defaults, size_t directions) {
  llvm::SmallVector<std::string> names = n.texts("activations");
  llvm::SmallVector<double> alphas = n.reals("activation_alpha").value_or(llvm::SmallVector<double>());
  llvm::SmallVector<double> betas = n.reals("activation_beta").value_or(llvm::SmallVector<double>());
  if (names.empty())
    for (size_t i = 0; i < directions * defaults.size(); ++i)
      names.push_back(defaults[i % defaults.size()].str());
  if (names.size() != directions * defaults.size()) {
    n.fail(DiagId::DimMismatch, "the number of activations", names.size(), "what is needed",
           directions * defaults.size());
    return false;
  }
  // Each takes the next value of those that it has a use for.
  llvm::ArrayRef<double> alphasLeft = alphas, betasLeft = betas;
  auto take = [](llvm::ArrayRef<double> &left, std::optional<double> otherwise) {
    if (!otherwise || left.empty())
      return otherwise.value_or(0);
    double first = left.front();
    left = left.drop_front();
    return first;
  };
  for (const std::string &name : names) {
    const ActivationKind *kind = llvm::find_if(
        activationKinds, [&](const ActivationKind &known) { return known.name.equals_insensitive(name); });
    if (kind == std::end(activationKinds)) {
      n.failWithHelp(listActivations(), DiagId::UnsupportedAttribute, "activations", "'" + name + "'");
      return false;
    }
    if (kind->name == "ScaledTanh" && (alphasLeft.empty() || betasLeft.empty())) { // ONNX has no defaults for it
      n.fail(DiagId::MissingAttribute, alphasLeft.empty() ? "activation_alpha" : "activation_beta");
      return false;
    }
    double alpha = take(alphasLeft, kind->alpha), beta = take(betasLeft, kind->beta);
    activations.push_back({kind->name, alpha, beta});
  }
  return true;
}

Direction Recurrence::direction(size_t index, bool isReverse, bool joinsBiases) {
  size_t count = activations.size() / (n.dim(n.input(1), 0).isConstant(2) ? 2 : 1);
  Direction d;
  d.isReverse = isReverse;
  d.activations = llvm::ArrayRef(activations).slice(index * count, count);
  d.recurrence = n.swapAxes(part(n.input(2), index), 0, 1);
  d.inputProducts = n.matmul(isReverse && lengths ? mirror(x) : x, n.swapAxes(part(n.input(1), index), 0, 1));
  if (Value bias = part(n.optionalInput(3), index)) {
    Value ofInput = n.sliceAxis(bias, 0, n.expr(0), n.expr(gates * hidden));
    d.recurrenceBias = n.sliceAxis(bias, 0, n.expr(gates * hidden), n.expr(gates * hidden));
    if (joinsBiases) {
      ofInput = n.add(ofInput, d.recurrenceBias);
      d.recurrenceBias = {};
    }
    d.inputProducts = n.add(d.inputProducts, ofInput);
  }
  d.peepholes = gates == 4 ? part(n.optionalInput(7), index) : Value();
  return d;
}

/// [batch, hidden]
Value Recurrence::initial(size_t input, size_t direction) {
  Dims dims{n.dim(x, 1), n.expr(hidden)};
  Value given = n.optionalInput(input);
  if (!given)
    return n.fill(n.scalarLike(0, x), dims);
  Value state = part(isBatchFirst ? n.swapAxes(given, 0, 1) : given, direction);
  for (size_t i = 0; i < dims.size(); ++i)
    if (n.rank(state) != 2 || !n.shapes.assumeEqual(n.dim(state, i), dims[i]))
      return n.fail(DiagId::DimMismatch, "dim " + std::to_string(i) + " of an initial state", n.dim(state, i),
                    "X and R", dims[i]);
  return n.reshape(state, dims);
}

/// [time, batch, ...] with each sample's own sequence turned around; what is behind it stays.
Value Recurrence::mirror(Value steps) {
  Dims dims = n.dims(steps);
  Value position = n.iota(0, dims, n.si64()), length = n.broadcast(lengths, 1, dims);
  Value mirrored = n.sub(n.sub(length, 1.0), position);
  return n.gatherElements(steps, n.select(n.less(position, length), mirrored, position), 0);
}

bool Recurrence::checkShapes() {
  x = n.input(0);
  isBatchFirst = n.integer("layout", 0) == 1;
  if (n.rank(x) != 3 || n.rank(n.input(1)) != 3 || n.rank(n.input(2)) != 3) {
    n.fail(DiagId::WrongRank, 0, n.rank(x), "rank 3 is needed of X, W and R");
    return false;
  }
  if (isBatchFirst)
    x = n.swapAxes(x, 0, 1);
  time = n.dim(x, 0);
  Expr size = n.dim(n.input(2), 2), directions = n.dim(n.input(1), 0);
  std::string way = n.text("direction", "forward");
  int64_t wanted = way == "bidirectional" ? 2 : 1;
  if (!size.isConstant() || !directions.isConstant(wanted)) {
    n.fail(DiagId::DimMismatch, "dim 0 of input 1", directions, "the number of directions", wanted);
    return false;
  }
  hidden = size.getValue();
  if (n.has("clip"))
    clip = n.real("clip", 0);
  if (Value given = n.optionalInput(4)) {
    Expr batch = n.dim(x, 1);
    if (n.rank(given) != 1 || !n.shapes.assumeEqual(n.dim(given, 0), batch)) {
      n.fail(DiagId::DimMismatch, "the shape of input 4 (sequence_lens)", n.describe(n.dims(given)), "the batch",
             n.describe({batch}));
      return false;
    }
    // Lengths that are all the whole sequence change nothing.
    std::optional<Ints> known = n.knownInts(given);
    if (!known || llvm::any_of(*known, [&](int64_t length) { return !time.isConstant(length); }))
      lengths = n.convert(given, n.si64());
  }
  return true;
}

State Recurrence::runStep(const Direction &d, Expr round, Value inputProduct, State state, Step step, Value &row) {
  State next = step(d, inputProduct, state);
  row = next.hidden;
  if (lengths && row) {
    Value number = n.fill(n.fromExprs(round, n.si64(), /*isScalar=*/true), n.dims(lengths));
    Value isLive = n.unsqueeze(n.less(number, lengths), 1);
    row = n.select(isLive, next.hidden, n.scalarLike(0, next.hidden));
    next.hidden = n.select(isLive, next.hidden, state.hidden);
    next.cell = hasCell ? n.select(isLive, next.cell, state.cell) : Value();
  }
  return next;
}

/// The last states of all directions, then the rows of each, stacked.
Values Recurrence::runLoop(llvm::ArrayRef<Direction> directions, llvm::ArrayRef<State> states, Step step) {
  mlir::OpBuilder &builder = n.getBuilder();
  mlir::Location loc = n.getLoc();
  Values initial, scanned, yielded, rows;
  for (const State &state : states) {
    initial.push_back(state.hidden);
    if (hasCell)
      initial.push_back(state.cell);
  }
  for (const Direction &d : directions)
    scanned.push_back(d.isReverse && !lengths ? flip(d.inputProducts) : d.inputProducts);
  if (n.hasFailed())
    return {};
  Expr round = n.shapes.declareBound({.min = 0, .hint = 0}, time - 1);
  mlir::OperationState made(loc, LoopOp::getOperationName());
  mlir::Region *region = made.addRegion();
  {
    mlir::OpBuilder::InsertionGuard guard(builder);
    mlir::Block *block = builder.createBlock(region);
    for (Value value : initial)
      block->addArgument(value.getType(), loc);
    for (Value value : scanned)
      block->addArgument(getTensorType(llvm::ArrayRef<Expr>(n.dims(value)).drop_front(), n.elementType(value)), loc);
    size_t perState = hasCell ? 2 : 1;
    for (auto [i, d] : llvm::enumerate(directions)) {
      State state{block->getArgument(i * perState), hasCell ? block->getArgument(i * perState + 1) : Value()};
      State next = runStep(d, round, block->getArgument(initial.size() + i), state, step, rows.emplace_back());
      yielded.push_back(n.reshape(next.hidden, n.dims(state.hidden)));
      if (hasCell)
        yielded.push_back(n.reshape(next.cell, n.dims(state.cell)));
    }
    if (n.hasFailed())
      return {};
    if (!n.hasOutput(0))
      rows.clear();
    yielded.append(rows);
    YieldOp::create(builder, loc, yielded);
  }
  made.addOperands(initial);
  made.addOperands(scanned);
  auto &properties = made.getOrAddProperties<LoopOp::Properties>();
  properties.counter = builder.getStringAttr(round.getSymbol());
  properties.trips = time;
  properties.operandSegmentSizes = {0, 0, int(initial.size()), int(scanned.size())};
  for (Value value : initial)
    made.addTypes(value.getType());
  for (Value row : rows) {
    Dims dims = n.dims(row);
    dims.insert(dims.begin(), time);
    made.addTypes(getTensorType(dims, n.elementType(row)));
  }
  return Values(builder.create(made)->getResults());
}

/// Y, Y_h and Y_c from what runLoop gives.
Values Recurrence::finish(llvm::ArrayRef<Direction> directions, llvm::ArrayRef<Value> results) {
  Values lastHidden, lastCell, outputs;
  for (size_t i = 0; i < directions.size(); ++i) {
    lastHidden.push_back(results.consume_front());
    if (hasCell)
      lastCell.push_back(results.consume_front());
  }
  for (auto [d, y] : llvm::zip(directions, results)) // none if nobody wants Y
    outputs.push_back(!d.isReverse ? y : lengths ? mirror(y) : flip(y));
  int64_t axis = isBatchFirst ? 1 : 0;
  Value y = outputs.empty() ? Value() : n.stack(outputs, 1); // [time, directions, batch, hidden]
  if (isBatchFirst && y)
    y = n.transpose(y, {2, 0, 1, 3});
  return {y, n.stack(lastHidden, axis), hasCell ? n.stack(lastCell, axis) : Value()};
}

Values Recurrence::run(llvm::ArrayRef<llvm::StringRef> defaultActivations, bool withCell, bool joinsBiases, Step step) {
  hasCell = withCell;
  if (!checkShapes())
    return {};
  std::string way = n.text("direction", "forward");
  size_t count = way == "bidirectional" ? 2 : 1;
  if (!readActivations(defaultActivations, count))
    return {};
  std::vector<Direction> directions;
  std::vector<State> states;
  for (size_t i = 0; i < count; ++i) {
    directions.push_back(direction(i, way == "reverse" || i == 1, joinsBiases));
    states.push_back({initial(5, i), hasCell ? initial(6, i) : Value()});
  }
  if (!time.isConstant(1)) {
    Values results = runLoop(directions, states, step);
    return results.empty() ? results : finish(directions, results);
  }
  Values results, rows;
  for (auto [d, state] : llvm::zip(directions, states)) {
    State next = runStep(d, n.expr(0), n.at(d.inputProducts, 0, 0), state, step, rows.emplace_back());
    results.push_back(next.hidden);
    if (hasCell)
      results.push_back(next.cell);
  }
  for (Value row : rows)
    results.push_back(n.unsqueeze(row, 0));
  return n.hasFailed() ? Values() : finish(directions, results);
}

} // namespace

/// h = f(x W + h R + b)
Values rnn(NodeContext &n) {
  Recurrence r(n, 1);
  return r.run({"Tanh"}, false, /*joinsBiases=*/true, [&](const Direction &d, Value xw, State s) {
    return State{r.activate(d.activations[0], r.clipped(n.add(xw, r.recurrenceProduct(d, s.hidden, 1)))), {}};
  });
}

/// z, r = f(...); candidate g; h = (1 - z) g + z h
Values gru(NodeContext &n) {
  Recurrence r(n, 3);
  bool isLinearFirst = n.flag("linear_before_reset");
  return r.run({"Sigmoid", "Tanh"}, false, /*joinsBiases=*/false, [&](const Direction &d, Value xw, State s) {
    Value hr = r.recurrenceProduct(d, s.hidden, isLinearFirst ? 3 : 2);
    auto biased = [&](Value product, int64_t gate) {
      Value bias = d.recurrenceBias;
      return bias ? n.add(product, n.sliceAxis(bias, 0, n.expr(gate * r.hidden), n.expr(r.hidden))) : product;
    };
    auto gate = [&](int64_t i) {
      return r.activate(d.activations[0], r.clipped(n.add(r.gate(xw, i), biased(r.gate(hr, i), i))));
    };
    Value z = gate(0), reset = gate(1), candidate;
    if (isLinearFirst) {
      candidate = n.mul(reset, biased(r.gate(hr, 2), 2));
    } else {
      Value weights = n.sliceAxis(d.recurrence, 1, n.expr(2 * r.hidden), n.expr(r.hidden));
      candidate = biased(n.matmul(n.mul(reset, s.hidden), weights), 2);
    }
    Value g = r.activate(d.activations[1], r.clipped(n.add(r.gate(xw, 2), candidate)));
    Value kept = n.mul(z, s.hidden), fresh = n.mul(n.sub(n.scalarLike(1, z), z), g);
    return State{n.add(fresh, kept), {}};
  });
}

/// i, o, f = f(... + P * c); g; c = f c + i g; h = o * h(c)
Values lstm(NodeContext &n) {
  Recurrence r(n, 4);
  bool couples = n.flag("input_forget");
  return r.run({"Sigmoid", "Tanh", "Tanh"}, true, /*joinsBiases=*/true, [&](const Direction &d, Value xw, State s) {
    Value gates = n.add(xw, r.recurrenceProduct(d, s.hidden, 4)); // i, o, f, g
    auto peep = [&](Value x, int64_t i, Value cell) {
      if (!d.peepholes)
        return x;
      return n.add(x, n.mul(n.sliceAxis(d.peepholes, 0, n.expr(i * r.hidden), n.expr(r.hidden)), cell));
    };
    auto activate = [&](int64_t f, Value x) { return r.activate(d.activations[f], r.clipped(x)); };
    Value i = activate(0, peep(r.gate(gates, 0), 0, s.cell));
    Value f = couples ? n.sub(n.scalarLike(1, i), i) : activate(0, peep(r.gate(gates, 2), 2, s.cell));
    Value g = activate(1, r.gate(gates, 3));
    Value cell = n.add(n.mul(f, s.cell), n.mul(i, g));
    Value o = activate(0, peep(r.gate(gates, 1), 1, cell));
    return State{n.mul(o, r.activate(d.activations[2], cell)), cell};
  });
}

} // namespace ptc::decomp
