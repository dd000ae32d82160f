//===- Recurrent.cpp - RNN, GRU and LSTM, unrolled ------------------------===//
//
// The three operators share everything but the step: directions, initial states,
// sequence lengths, layout, clipping, activations. `runDirection` walks the time
// axis of one direction and calls the step; each step sees x[t] already multiplied
// by W for all time steps at once (one large product instead of many small ones),
// and multiplies the state by R itself.
//
// Shapes (layout 0): X [time, batch, input], W [directions, gates*hidden, input],
// R [directions, gates*hidden, hidden], B [directions, 2*gates*hidden], states
// [directions, batch, hidden]; Y [time, directions, batch, hidden]. Layout 1 puts
// the batch first.
//
// A sample whose sequence has ended keeps its state and yields zeros. The reverse
// direction of such a sample begins at its own last element.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/OnnxOps.h"

using namespace ptc::prim;

namespace ptc::decomp {

static constexpr int64_t maxUnrolledSteps = 64;

namespace {

struct Activation {
  std::string name;
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
  Value recurrenceProduct(const Direction &d, Value h) { return n.matmul(h, d.recurrence); }
  int64_t hidden = 0;

private:
  bool readActivations(llvm::ArrayRef<llvm::StringRef> defaults, size_t directions);
  Direction direction(size_t index, bool isReverse, bool joinsBiases);
  Value part(Value v, size_t direction) { return v ? n.at(v, 0, direction) : Value(); }
  Value initial(size_t input, size_t direction);
  Value selectTime(Value steps, int64_t t, bool isReverse);

  NodeContext &n;
  int64_t gates;
  int64_t time = 0;
  std::optional<double> clip;
  bool isBatchFirst = false;
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
  return n.fail(DiagId::UnsupportedAttribute, "activations", "'" + a.name + "'");
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
  for (auto [i, name] : llvm::enumerate(names)) {
    double alpha = name == "LeakyRelu" ? 0.01 : name == "HardSigmoid" ? 0.2 : 1.0;
    double beta = name == "HardSigmoid" ? 0.5 : name == "Affine" ? 0.0 : 1.0;
    activations.push_back({name, i < alphas.size() ? alphas[i] : alpha, i < betas.size() ? betas[i] : beta});
  }
  return true;
}

Direction Recurrence::direction(size_t index, bool isReverse, bool joinsBiases) {
  size_t count = activations.size() / (n.dim(n.input(1), 0).isConstant(2) ? 2 : 1);
  Direction d;
  d.isReverse = isReverse;
  d.activations = llvm::ArrayRef(activations).slice(index * count, count);
  d.recurrence = n.swapAxes(part(n.input(2), index), 0, 1);
  d.inputProducts = n.matmul(x, n.swapAxes(part(n.input(1), index), 0, 1));
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

Value Recurrence::initial(size_t input, size_t direction) {
  if (Value given = n.optionalInput(input))
    return part(isBatchFirst ? n.swapAxes(given, 0, 1) : given, direction);
  return n.fill(n.scalarLike(0, x), {n.dim(x, 1), n.expr(hidden)});
}

/// Row `t` of [time, batch, ...]; in reverse, each sample counts from the end of its own sequence.
Value Recurrence::selectTime(Value steps, int64_t t, bool isReverse) {
  if (!isReverse)
    return n.at(steps, 0, t);
  if (!lengths)
    return n.at(steps, 0, time - 1 - t);
  Value row = n.sub(n.sub(lengths, 1.0), double(t)); // [batch]; clamped: rows past the end are not used
  row = n.maximum(row, n.scalarLike(0, row));
  Dims one = n.dims(steps);
  one[0] = n.expr(1);
  return n.at(n.gatherElements(steps, n.broadcast(row, 1, one), 0), 0, 0);
}

Values Recurrence::run(llvm::ArrayRef<llvm::StringRef> defaultActivations, bool hasCell, bool joinsBiases, Step step) {
  x = n.input(0);
  isBatchFirst = n.integer("layout", 0) == 1;
  if (n.rank(x) != 3 || n.rank(n.input(1)) != 3 || n.rank(n.input(2)) != 3)
    return {n.fail(DiagId::WrongRank, 0, n.rank(x), "rank 3 is needed of X, W and R")};
  if (isBatchFirst)
    x = n.swapAxes(x, 0, 1);
  Expr steps = n.dim(x, 0), size = n.dim(n.input(2), 2), directions = n.dim(n.input(1), 0);
  if (!steps.isConstant())
    return {n.failWithHelp("pin it with --dim or --shape", DiagId::DataDependentShape,
                           "the sequence length " + steps.str())};
  if (steps.getValue() > maxUnrolledSteps)
    return {n.fail(DiagId::TooLongToUnroll, steps.getValue(), maxUnrolledSteps)};
  std::string way = n.text("direction", "forward");
  size_t wanted = way == "bidirectional" ? 2 : 1;
  if (!size.isConstant() || !directions.isConstant(wanted))
    return {n.fail(DiagId::DimMismatch, "dim 0 of input 1", directions, "the number of directions", wanted)};
  time = steps.getValue();
  hidden = size.getValue();
  if (n.has("clip"))
    clip = n.real("clip", 0);
  if (Value given = n.optionalInput(4)) {
    // Lengths that are all the whole sequence change nothing.
    std::optional<Ints> known = n.knownInts(given);
    if (!known || llvm::any_of(*known, [&](int64_t l) { return l != time; }))
      lengths = n.convert(given, n.si64());
  }
  if (!readActivations(defaultActivations, wanted))
    return {};

  Values outputs, lastHidden, lastCell; // by direction
  for (size_t i = 0; i < wanted; ++i) {
    bool isReverse = way == "reverse" || i == 1;
    Direction d = direction(i, isReverse, joinsBiases);
    State state{initial(5, i), hasCell ? initial(6, i) : Value()};
    Values rows(time);
    for (int64_t t = 0; t < time; ++t) {
      State next = step(d, selectTime(d.inputProducts, t, isReverse), state);
      Value row = next.hidden;
      if (lengths && row) {
        Value isLive = n.unsqueeze(n.less(n.fill(n.scalar(t, n.si64()), n.dims(lengths)), lengths), 1);
        row = n.select(isLive, next.hidden, n.scalarLike(0, next.hidden));
        next.hidden = n.select(isLive, next.hidden, state.hidden);
        next.cell = hasCell ? n.select(isLive, next.cell, state.cell) : Value();
      }
      state = next;
      rows[isReverse && !lengths ? time - 1 - t : t] = row;
    }
    Value y = n.stack(rows, 0); // [time, batch, hidden]
    if (isReverse && lengths) { // step t of a sample belongs to its row length-1-t
      Value position = n.iota(0, n.dims(y), n.si64()), length = n.broadcast(lengths, 1, n.dims(y));
      Value mirrored = n.sub(n.sub(length, 1.0), position);
      y = n.gatherElements(y, n.select(n.less(position, length), mirrored, position), 0);
    }
    outputs.push_back(y);
    lastHidden.push_back(state.hidden);
    if (hasCell)
      lastCell.push_back(state.cell);
  }
  int64_t axis = isBatchFirst ? 1 : 0;
  Value y = n.stack(outputs, 1); // [time, directions, batch, hidden]
  if (isBatchFirst)
    y = n.transpose(y, {2, 0, 1, 3});
  return {y, n.stack(lastHidden, axis), hasCell ? n.stack(lastCell, axis) : Value()};
}

} // namespace

/// h = f(x W + h R + b)
Values rnn(NodeContext &n) {
  Recurrence r(n, 1);
  return r.run({"Tanh"}, false, /*joinsBiases=*/true, [&](const Direction &d, Value xw, State s) {
    return State{r.activate(d.activations[0], r.clipped(n.add(xw, r.recurrenceProduct(d, s.hidden)))), {}};
  });
}

/// z, r = f(...); candidate g; h = (1 - z) g + z h
Values gru(NodeContext &n) {
  Recurrence r(n, 3);
  bool isLinearFirst = n.flag("linear_before_reset");
  return r.run({"Sigmoid", "Tanh"}, false, /*joinsBiases=*/false, [&](const Direction &d, Value xw, State s) {
    Value hr = r.recurrenceProduct(d, s.hidden);
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
    Value gates = n.add(xw, r.recurrenceProduct(d, s.hidden)); // i, o, f, g
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
