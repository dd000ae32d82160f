//===- RegionLoop.cpp - a loop as the region of prim.loop -----------------===//
//
// The body is imported once, and what surrounds it is used directly:
//
//   the number of the round     the symbol `round`, so that shape arithmetic follows it
//   the condition of a round    true: a round runs only if it holds
//   states                      arguments; those that no round changes are the initial values themselves. Dims that
//                               rounds change are symbols that the loop carries
//   scanned tensors             round i takes element i of dim 0
//   scanned results             stacked along dim 0
//
// A sequence that begins empty gets the type of what the rounds put into it. A size of rows that the body finds out but
// that no round changes is found out in front of the loop.
//
// If the body's condition is always true the loop counts; if it compares the round with a size it counts, too.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/HoistedSizes.h"
#include "lowering/decomp/LoopForm.h"
#include "lowering/decomp/RegionSymbols.h"
#include "lowering/decomp/Sequences.h"

using namespace mlir;
using namespace ptc::prim;

namespace ptc::decomp {

namespace {

/// The number of rounds of a loop that goes on while `condition` of the last one, an expression of its number, is
/// not 0: null where that is no comparison with something that stays.
Expr countRounds(Expr condition, Expr round) {
  if (condition.getKind() != ExprKind::Lt)
    return {};
  Expr rest, difference = condition.getOperands()[0] - condition.getOperands()[1];
  Expr coefficient = difference.coefficientOf(round.getSymbol(), &rest);
  if (!coefficient || !coefficient.isConstant(1))
    return {};
  // Round i runs, but for the first one, if (i - 1) + rest < 0.
  Expr one = Expr::constant(rest.getContext(), 1);
  return Expr::max(one, one - rest);
}

/// A dim of states that changes from round to round.
struct CarriedSize {
  SmallVector<std::pair<unsigned, unsigned>, 2> places; // state and axis, the same in all of them
  Expr initial, next;
  Expr most;   // that it can be, over what is known outside; null: nothing bounds it
  Expr symbol; // in the region
};

/// Imports the body until nothing new is learned of the loop: how its condition counts the rounds, which sizes its
/// states carry, how large these can be.
class RegionLoop {
public:
  RegionLoop(NodeContext &n, LoopForm form)
      : n(n), form(std::move(form)), before(n.shapes), outside(n.shapes), hoisted(n),
        hasItems(this->form.states.size(), false) {}
  ~RegionLoop() { dropImport(); }

  /// The loop's results; nothing after a diagnostic.
  std::optional<Values> build(LoopBody body) {
    // A size, how many rounds, the size's bound, then sizes that follow: of states that take each other's old values
    // one size and one bound at a time.
    const size_t mostImports = 8 + 2 * form.states.size();
    for (size_t number = 0; number < mostImports; ++number) {
      dropImport();
      n.shapes = outside = before;
      region = std::make_unique<Region>();
      declareSymbols();
      std::vector<Diagnostic> reports;
      if (!n.attempt([&] { return importBody(body); }, reports)) {
        if (number == 0 && carryEmptySizes())
          continue;
        n.report(std::move(reports));
        return std::nullopt;
      }
      std::optional<bool> isNew = learn();
      if (!isNew)
        return std::nullopt;
      if (*isNew)
        continue;
      return create();
    }
    n.fail(DiagId::UnsupportedForm, "a loop whose states change their shapes in this way");
    return std::nullopt;
  }

private:
  Block &block() { return region->front(); }
  size_t ownStates() const { return form.states.size() - (hasGrowingStacks ? form.stacks : 0); }

  //===--- Import ---===//

  void declareSymbols() {
    round = n.shapes.declareBound({.min = 0, .hint = 0}, form.trips ? form.trips - 1 : Expr());
    for (CarriedSize &size : sizes)
      size.symbol = declareSize(size);
  }

  Expr declareSize(const CarriedSize &size) {
    SymbolBounds bounds{.min = 0};
    bounds.hint =
        std::clamp<int64_t>(n.shapes.atHints(size.most ? size.most : size.initial).value_or(1), 0, bounds.max);
    return n.shapes.declareBound(bounds, size.most);
  }

  CarriedSize *findSize(unsigned state, unsigned axis) {
    for (CarriedSize &size : sizes)
      if (llvm::is_contained(size.places, std::pair(state, axis)))
        return &size;
    return nullptr;
  }

  Type stateType(unsigned state, llvm::function_ref<Expr(CarriedSize &)> value) {
    Dims dims = n.dims(form.states[state]);
    for (auto [axis, dim] : llvm::enumerate(dims))
      if (CarriedSize *size = findSize(state, axis))
        dim = value(*size);
    return getTensorType(dims, n.elementType(form.states[state]));
  }

  /// The body as it was imported, if it did not become part of the program.
  void dropImport() {
    region.reset();
    hoisted.drop();
  }

  bool importBody(LoopBody body) {
    OpBuilder &builder = n.getBuilder();
    OpBuilder::InsertionGuard guard(builder);
    hoisted.start(builder.saveInsertionPoint());
    builder.createBlock(region.get());
    Values states, elements;
    for (unsigned i = 0; i < form.states.size(); ++i)
      states.push_back(block().addArgument(stateType(i, [](CarriedSize &size) { return size.symbol; }), n.getLoc()));
    for (Value scanned : form.scanned) {
      Dims dims = n.dims(scanned);
      Type type = getTensorType(ArrayRef<Expr>(dims).drop_front(), n.elementType(scanned));
      elements.push_back(block().addArgument(type, n.getLoc()));
    }
    std::optional<Values> results = body(round, ArrayRef<Value>(states).take_front(ownStates()), elements);
    if (!results)
      return false;
    ArrayRef<Value> yielded = *results;
    if (form.hasCondition)
      next = n.reshape(yielded.consume_front(), {});
    nextStates.assign(yielded.begin(), yielded.begin() + ownStates());
    isUnwrapped.assign(nextStates.size(), false);
    for (auto [i, value] : llvm::enumerate(nextStates))
      if (Type joined = value ? joinSequences(n, states[i], value) : Type(); joined == states[i].getType()) {
        isUnwrapped[i] = isOptional(states[i]) && !isOptional(value);
        value = convertSequence(n, value, joined);
      }
    rows.clear();
    for (Value row : yielded.drop_front(ownStates()))
      rows.push_back(likeFirstRow(row));
    if (hasGrowingStacks) {
      for (auto [stack, row] : llvm::zip_equal(ArrayRef<Value>(states).drop_front(ownStates()), rows))
        nextStates.push_back(n.concat({stack, n.unsqueeze(row, 0)}, 0));
      rows.clear();
    }
    return !n.hasFailed();
  }

  bool isInside(Expr e) const {
    return e.usesAny([&](StringRef symbol) { return !outside.isDeclared(symbol); });
  }

  /// The row, of the size that it has in round 0: rows of several sizes do not stack.
  Value likeFirstRow(Value row) {
    Dims dims = n.dims(row);
    for (Expr dim : dims)
      hoisted.hoist(dim, block(), form, outside);
    if (llvm::none_of(dims, [&](Expr dim) { return isInside(dim); }))
      return row;
    for (Expr &dim : dims) {
      dim = dim.substitute([&](StringRef name) -> Expr {
        if (round.isSymbol(name))
          return n.expr(0);
        for (const CarriedSize &size : sizes)
          if (size.symbol.isSymbol(name))
            return size.initial;
        return {};
      });
      dim = n.shapes.simplify(dim);
      if (isInside(dim))
        return n.failWithHelp("pin it with --dim or --shape", DiagId::DataDependentShape, "the size of a loop's rows");
    }
    return n.broadcastTo(row, dims);
  }

  //===--- What the rounds are like ---===//

  /// Whether the body is to be imported again, knowing more; nothing after a diagnostic.
  std::optional<bool> learn() {
    std::optional<bool> isNew = learnSizes();
    if (!isNew || *isNew)
      return isNew; // what the condition is known to be follows from sizes, too
    isNew = learnCondition();
    if (!rows.empty() && !form.trips) {
      // Stacks that nothing bounds are states that each round makes a row longer.
      hasGrowingStacks = true;
      for (Value row : rows) {
        Dims dims = n.dims(row);
        dims.insert(dims.begin(), n.expr(0));
        form.states.push_back(n.fill(n.scalar(0, n.elementType(row)), dims));
      }
      isNew = true;
    }
    return isNew;
  }

  /// What the condition is known to be becomes part of the trips.
  bool learnCondition() {
    if (!form.hasCondition || isCounted)
      return false;
    std::optional<Expr> known = n.knownCondition(next);
    std::optional<Ints> first = form.condition ? n.knownInts(form.condition) : Ints{1};
    if (first && !first->front()) {
      form.trips = n.expr(0);
      return isCounted = true;
    }
    if (!first || !known || known->isConstant(0))
      return false;
    Expr count = known->isConstant() ? Expr() : countRounds(*known, round);
    if (!known->isConstant() && (!count || isInside(count)))
      return false;
    if (count)
      form.trips = n.shapes.simplify(form.trips ? Expr::min(form.trips, count) : count);
    isCounted = form.trips || form.limit;
    return count && isCounted;
  }

  std::optional<bool> learnSizes() {
    if (learnItems())
      return true;
    bool isNew = false;
    size_t before = sizes.size();
    for (auto [i, value] : llvm::enumerate(nextStates)) {
      Value argument = block().getArgument(i);
      if (Type joined = argument.getType() == value.getType() ? Type() : joinSequences(n, argument, value)) {
        form.states[i] = convertSequence(n, form.states[i], joined);
        isNew = true;
        continue;
      }
      if (n.elementType(argument) != n.elementType(value) || n.rank(argument) != n.rank(value)) {
        n.fail(DiagId::UnsupportedForm, "a loop whose state " + std::to_string(i) + " changes from " +
                                            describeType(form.states[i].getType()) + " to " +
                                            describeType(value.getType()));
        return std::nullopt;
      }
      for (auto [axis, was] : llvm::enumerate(n.dims(argument)))
        isNew |= noteDim(i, axis, was, n.dim(value, axis), before);
    }
    if (isNew) { // bounds follow from what all sizes become
      for (CarriedSize &size : sizes)
        size.most = {};
      return true;
    }
    for (CarriedSize &size : sizes)
      if (Expr most = size.most ? Expr() : findMost(size)) {
        size.most = most;
        isNew = true;
      }
    return isNew;
  }

  /// Whether sequences that begin empty turn out to be of tensors of some type.
  bool learnItems() {
    Values untyped;
    SmallVector<unsigned> numbers;
    for (auto [i, initial] : llvm::enumerate(ArrayRef<Value>(form.states).take_front(nextStates.size()))) {
      std::optional<Values> items = knownItems(initial);
      if (!items || !items->empty() || isOptional(initial) || hasItems[i])
        continue;
      untyped.push_back(block().getArgument(i));
      numbers.push_back(i);
    }
    bool isNew = false;
    for (auto [argument, i] : llvm::zip_equal(untyped, numbers))
      if (TensorType added = itemsAdded(nextStates[i], untyped)) {
        hasItems[i] = true; // what differs from it then is joined as any other
        Type type = sequenceOf(added);
        isNew |= type != argument.getType();
        form.states[i] = convertSequence(n, form.states[i], type);
      }
    return isNew;
  }

  /// Whether the dim turns out to be another size than it was taken for.
  bool noteDim(unsigned state, unsigned axis, Expr was, Expr now, size_t before) {
    CarriedSize *size = findSize(state, axis);
    bool isFirst = size && size->places.front() == std::pair(state, axis);
    if (isFirst)
      size->next = now;
    if (size ? isFirst || size->next == now : was == now)
      return false;
    Expr initial = n.dim(form.states[state], axis);
    if (size)
      llvm::erase(size->places, std::pair(state, axis));
    for (CarriedSize &other : llvm::MutableArrayRef(sizes).drop_front(before))
      if (other.initial == initial && other.next == now) {
        other.places.push_back({state, axis});
        return true;
      }
    sizes.push_back({{{state, axis}}, initial, now, {}, {}});
    return true;
  }

  /// The most that a size is after a round, over what is known outside and what the rounds carry.
  Expr nextAtMost(const CarriedSize &size) {
    RegionSymbols symbols(block());
    std::function<std::optional<Expr>(StringRef)> most = [&](StringRef symbol) -> std::optional<Expr> {
      std::optional<Expr> said = outside.isDeclared(symbol) ? std::nullopt : symbols.mostOf(symbol);
      return said && *said ? n.shapes.boundBy(*said, most) : said;
    };
    Expr next = n.shapes.boundBy(size.next, most);
    return next ? next : size.next;
  }

  Expr findMost(const CarriedSize &size) {
    Expr next = nextAtMost(size), step = n.shapes.simplify(next - size.symbol);
    bool isSteady = !step.uses(size.symbol.getSymbol());
    if (!isSteady && next.uses(size.symbol.getSymbol()))
      return {};
    Expr most = n.shapes.mostOf(isSteady ? step : next);
    if (!most)
      return {};
    if (!isSteady)
      return n.shapes.simplify(Expr::max(size.initial, most));
    most = n.shapes.simplify(Expr::max(most, n.expr(0)));
    if (most.isConstant(0))
      return size.initial;
    return form.trips ? n.shapes.simplify(size.initial + most * form.trips) : Expr();
  }

  /// A body may make no sense of the empty states that it begins with.
  bool carryEmptySizes() {
    for (auto [i, initial] : llvm::enumerate(form.states))
      for (auto [axis, dim] : llvm::enumerate(n.dims(initial)))
        if (dim.isConstant(0))
          sizes.push_back({{{unsigned(i), unsigned(axis)}}, dim, {}, {}, {}});
    return !sizes.empty();
  }

  //===--- The op ---===//

  /// States that the body hands on as they are.
  void dropConstantStates(SmallVectorImpl<Type> &types) {
    results.assign(form.states.size(), Value());
    for (size_t i = form.states.size(); i-- > 0;) {
      BlockArgument argument = block().getArgument(i);
      if (nextStates[i] != argument || argument.getType() != form.states[i].getType())
        continue;
      results[i] = form.states[i];
      argument.replaceAllUsesWith(form.states[i]);
      for (Value *value : others())
        *value = *value == argument ? form.states[i] : *value;
      types.erase(types.begin() + i);
      form.states.erase(form.states.begin() + i);
      nextStates.erase(nextStates.begin() + i);
      block().eraseArgument(i);
    }
  }

  SmallVector<Value *> others() {
    SmallVector<Value *> all{&next};
    for (Value &value : llvm::concat<Value>(rows, nextStates))
      all.push_back(&value);
    return all;
  }

  /// Then nothing changes, not even a size.
  bool hasNoRound() const {
    return form.trips && form.trips.isConstant(0) && !llvm::is_contained(isUnwrapped, true) &&
           llvm::none_of(rows, [&](Value row) { return isHandle(n.elementType(row)); });
  }

  Values createWithoutRounds() {
    Values all(form.states);
    for (Value row : rows) {
      Dims dims = n.dims(row);
      dims.insert(dims.begin(), n.expr(0));
      all.push_back(n.fill(n.scalar(0, n.elementType(row)), dims));
    }
    n.shapes = outside;
    hoisted.keep();
    return all;
  }

  std::optional<Values> create() {
    if (hasNoRound())
      return createWithoutRounds();
    OpBuilder &builder = n.getBuilder();
    OperationState state(n.getLoc(), LoopOp::getOperationName());
    if (isCounted)
      form.condition = next = {};
    else if (form.hasCondition && !form.condition)
      form.condition = n.scalar(1, n.i1());
    auto &properties = state.getOrAddProperties<LoopOp::Properties>();
    properties.counter = builder.getStringAttr(round.getSymbol());
    if (form.trips)
      properties.trips = form.trips;
    Expr rounds = form.trips;
    if (!rows.empty() && (form.condition || form.limit)) {
      rounds = n.shapes.declareBound({.min = 0, .hint = n.shapes.atHints(form.trips).value_or(1)}, form.trips);
      properties.rounds = builder.getStringAttr(rounds.getSymbol());
    }
    SmallVector<Attribute> carried;
    for (CarriedSize &size : sizes) {
      Expr last = declareSize(size);
      carried.push_back(CarriedAttr::get(n.getContext(), size.symbol.getSymbol(), size.initial, size.next,
                                         last.getSymbol(), size.most ? ExprAttr(size.most) : ExprAttr()));
      size.symbol = last;
    }
    if (!carried.empty())
      properties.carried = builder.getArrayAttr(carried);
    SmallVector<Type> finalTypes;
    for (unsigned i = 0; i < form.states.size(); ++i)
      finalTypes.push_back(stateType(i, [](CarriedSize &size) { return size.symbol; }));
    dropConstantStates(finalTypes);
    for (Value value : {form.limit, form.condition})
      if (value)
        state.addOperands(value);
    state.addOperands(form.states);
    state.addOperands(form.scanned);
    properties.operandSegmentSizes = {form.limit ? 1 : 0, form.condition ? 1 : 0, int(form.states.size()),
                                      int(form.scanned.size())};
    for (Type type : finalTypes)
      state.addTypes(type);
    for (Value row : rows) {
      Dims dims = n.dims(row);
      dims.insert(dims.begin(), rounds);
      state.addTypes(getTensorType(dims, n.elementType(row)));
    }
    Values yielded;
    if (next)
      yielded.push_back(next);
    llvm::append_range(yielded, nextStates);
    llvm::append_range(yielded, rows);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(&block());
      YieldOp::create(builder, n.getLoc(), yielded);
    }
    state.addRegion(std::move(region));
    hoisted.keep();
    auto values = builder.create(state)->getResults().begin();
    for (Value &result : results)
      result = result ? result : Value(*values++);
    for (auto [result, isOptionalInside] : llvm::zip(results, isUnwrapped))
      if (isOptionalInside) // rounds give a value, and take one that may be absent
        result = presentValue(n, result);
    for (size_t i = 0; i < rows.size(); ++i)
      results.push_back(*values++);
    return results;
  }

  NodeContext &n;
  LoopForm form;
  ShapeScope before, outside; // the latter knows what moved in front of the loop, too
  HoistedSizes hoisted;
  std::unique_ptr<Region> region;
  Expr round;
  std::vector<CarriedSize> sizes;
  SmallVector<bool> hasItems;    // of each state: a sequence that has got the type of what is put into it
  bool isCounted = false;        // the condition holds as long as there are trips
  bool hasGrowingStacks = false; // the last states are stacks
  Value next;                    // condition
  Values nextStates, rows, results;
  SmallVector<bool> isUnwrapped; // of each state: optional, where the rounds give what is there
};

} // namespace

std::optional<Values> buildRegionLoop(NodeContext &n, LoopForm form, LoopBody importRound) {
  return RegionLoop(n, std::move(form)).build(importRound);
}

} // namespace ptc::decomp
