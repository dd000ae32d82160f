//===- LoopOps.cpp - syntax of program and kernel; queries over nodes -----===//

#include "ir/loop/Recurrence.h"
#include "ir/prim/WeightAttrs.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

#define GET_OP_CLASSES
#include "ir/loop/LoopOps.cpp.inc"

SmallVector<prim::WeightRefAttr> WeightOp::getRefs() { return prim::getWeightRefs(getRef(), getOthersAttr()); }

LogicalResult CallOp::verify() {
  bool isInKernel = getOperation()->getParentOfType<KernelOp>() || getOperation()->getParentOfType<FusedOp>();
  return isInKernel ? emitOpError("is inside a kernel, whose iterations run on any thread") : success();
}

//===----------------------------------------------------------------------===//
// loop.program @f(%x: type, ... | %y: type, ...) attributes {...} { ... }
// loop.kernel @k(%x: type, ...) attributes {...} { ... }
//===----------------------------------------------------------------------===//

/// Symbol name, block arguments, attributes and body of program and kernel. The
/// outputs of a program stand behind `|`; their position goes to `inputs`.
static ParseResult parseSymbolOp(OpAsmParser &parser, OperationState &result, bool hasOutputs) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(), result.attributes) || parser.parseLParen())
    return failure();
  int64_t inputs = -1;
  bool closed = succeeded(parser.parseOptionalRParen());
  while (!closed) {
    if (hasOutputs && inputs < 0 && succeeded(parser.parseOptionalVerticalBar())) {
      inputs = arguments.size();
      if (succeeded(parser.parseOptionalRParen()))
        break;
    }
    if (parser.parseArgument(arguments.emplace_back(), /*allowType=*/true))
      return failure();
    if (succeeded(parser.parseOptionalComma()))
      continue;
    if (hasOutputs && inputs < 0 && succeeded(parser.parseOptionalVerticalBar())) {
      inputs = arguments.size();
      if (succeeded(parser.parseOptionalRParen()))
        break;
      continue;
    }
    if (parser.parseRParen())
      return failure();
    break;
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  if (hasOutputs)
    result.addAttribute("inputs",
                        parser.getBuilder().getI64IntegerAttr(inputs < 0 ? int64_t(arguments.size()) : inputs));
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  if (body->empty()) {
    Block &block = body->emplaceBlock();
    for (OpAsmParser::Argument &argument : arguments)
      block.addArgument(argument.type, result.location);
  }
  return success();
}

static void printSymbolOp(OpAsmPrinter &printer, Operation *op, Block &block, int64_t inputs) {
  printer << ' ';
  printer.printSymbolName(SymbolTable::getSymbolName(op).getValue());
  printer << '(';
  for (auto [index, argument] : llvm::enumerate(block.getArguments())) {
    if (int64_t(index) == inputs)
      printer << (index ? " | " : "| ");
    else if (index)
      printer << ", ";
    printer.printRegionArgument(argument);
  }
  if (inputs == int64_t(block.getNumArguments()))
    printer << " |";
  printer << ')';
  printer.printOptionalAttrDictWithKeyword(op->getAttrs(), {"sym_name", "inputs"});
  printer << ' ';
  printer.printRegion(*block.getParent(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/false);
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseSymbolOp(parser, result, /*hasOutputs=*/true);
}
void ProgramOp::print(OpAsmPrinter &printer) { printSymbolOp(printer, *this, getBlock(), getInputs()); }
ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseSymbolOp(parser, result, /*hasOutputs=*/false);
}
void KernelOp::print(OpAsmPrinter &printer) { printSymbolOp(printer, *this, getBlock(), -1); }

LogicalResult LaunchOp::verify() {
  if (getJoined() && !isa_and_present<LaunchOp>(getOperation()->getPrevNode()))
    return emitOpError("is joined to a launch, and none is right before it");
  return success();
}

LogicalResult ProgramOp::verifyRegions() { return prim::verifyBoundSymbols(*this); }

//===----------------------------------------------------------------------===//
// Builders
//===----------------------------------------------------------------------===//

void LoadOp::build(OpBuilder &builder, OperationState &state, Value buffer, ArrayRef<Expr> indices,
                   ValueRange operands) {
  build(builder, state, cast<BufferType>(buffer.getType()).getElementType(), buffer,
        prim::getExprArray(builder.getContext(), indices), operands);
}

void StoreOp::build(OpBuilder &builder, OperationState &state, Value value, Value buffer, ArrayRef<Expr> indices,
                    ValueRange operands) {
  build(builder, state, value, buffer, prim::getExprArray(builder.getContext(), indices), operands,
        prim::ReduceKindAttr());
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

bool loop::isNode(Operation *op) {
  return isa<PointwiseOp, ReductionOp, ScanOp, ScatterOp, SortOp, GreedyOp, ContractionOp, AttentionOp>(op);
}

LaunchOp loop::getFirstJoined(LaunchOp launch) {
  while (launch.getJoined())
    launch = cast<LaunchOp>(launch->getPrevNode());
  return launch;
}

LaunchOp loop::getLastJoined(LaunchOp launch) {
  for (auto next = launch; (next = dyn_cast_or_null<LaunchOp>(next->getNextNode())) && next.getJoined();)
    launch = next;
  return launch;
}

Value loop::skipViews(Value buffer) {
  while (Operation *view = buffer.getDefiningOp()) {
    if (!isa<FlattenOp, PartOp>(view))
      break;
    buffer = view->getOperand(0);
  }
  return buffer;
}

bool loop::isControlFlow(Operation *op) { return isa<IfOp, RepeatOp>(op); }

SmallVector<Expr> loop::getDomain(Operation *node) { return prim::getExprs(node->getAttrOfType<ArrayAttr>("domain")); }

void loop::setDomain(Operation *node, ArrayRef<Expr> domain) {
  node->setAttr("domain", prim::getExprArray(node->getContext(), domain));
}

BoundSymbols::BoundSymbols(ProgramOp program) : ranges(prim::getSymbolRanges(program.getSymbols())) {
  collect(program);
}

/// What an op binds inside its regions comes before these, what it binds behind itself after them: its bound may be
/// over symbols of the regions.
void BoundSymbols::collect(Operation *op) {
  auto add = [&](bool wanted) {
    if (auto binder = dyn_cast<prim::SymbolBinderOpInterface>(op))
      binder.forEachBinding([&](StringRef name, Expr most, bool isInside) {
        if (isInside != wanted || find(name))
          return;
        symbols.push_back({name.str(), most ? getMost(most) : most, binder});
        places[name] = symbols.size() - 1;
      });
  };
  add(/*wanted=*/true);
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps())
      collect(&inner);
  add(/*wanted=*/false);
}

const BoundSymbol *BoundSymbols::find(StringRef name) const {
  auto place = places.find(name);
  return place == places.end() ? nullptr : &symbols[place->second];
}

bool BoundSymbols::uses(Expr expr) const {
  return expr.usesAny([&](StringRef symbol) { return find(symbol) != nullptr; });
}

Expr BoundSymbols::getMost(Expr expr) const {
  return boundExpr(expr, ranges,
                   [&](StringRef name) -> std::optional<ExprBounds> {
                     const BoundSymbol *symbol = find(name);
                     if (!symbol)
                       return std::nullopt;
                     int64_t least = ranges.lookup(name).min;
                     bool isKnown = least != std::numeric_limits<int64_t>::min();
                     return ExprBounds{isKnown ? Expr::constant(expr.getContext(), least) : Expr(), symbol->atMost};
                   })
      .upper;
}

static Attribute mapExprs(Attribute attr, function_ref<Expr(Expr)> map) {
  if (auto expr = dyn_cast<ExprAttr>(attr))
    return map(Expr(expr));
  auto list = dyn_cast<ArrayAttr>(attr);
  if (!list || list.empty() || !isa<ExprAttr>(list[0]))
    return attr;
  SmallVector<Attribute> elements;
  for (Attribute element : list)
    elements.push_back(map(Expr(cast<ExprAttr>(element))));
  return ArrayAttr::get(attr.getContext(), elements);
}

void loop::mapExprs(Operation *root, function_ref<Expr(Expr)> map) {
  root->walk([&](Operation *op) {
    for (NamedAttribute entry : llvm::to_vector(op->getAttrs())) {
      Attribute changed = ::mapExprs(entry.getValue(), map);
      if (changed != entry.getValue())
        op->setAttr(entry.getName(), changed);
    }
  });
}

void loop::mapBodyExprs(Operation *node, function_ref<Expr(Expr)> map) {
  for (Region &region : node->getRegions())
    for (Operation &op : region.front())
      mapExprs(&op, map);
  if (auto product = dyn_cast<ContractionOp>(node); product && product.getNeededAttr())
    product.setNeededAttr(cast<ArrayAttr>(::mapExprs(product.getNeededAttr(), map)));
}

void loop::substituteExprs(Operation *root, function_ref<Expr(StringRef)> map) {
  mapExprs(root, [&](Expr expr) { return expr.substitute(map); });
}

void loop::collectAccesses(Operation *root, SmallVectorImpl<Value> &read, SmallVectorImpl<Value> &written) {
  auto add = [](SmallVectorImpl<Value> &list, Value buffer) {
    if (!llvm::is_contained(list, buffer))
      list.push_back(buffer);
  };
  root->walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op))
      add(read, load.getBuffer());
    else if (auto panels = dyn_cast<PanelsOp>(op))
      add(read, panels.getBuffer());
    else if (isControlFlow(op)) // the host reads it
      for (Value operand : op->getOperands())
        add(read, operand);
    else if (auto regrow = dyn_cast<RegrowOp>(op)) { // read in any case: parts that others write are ordered by it
      add(read, regrow.getBuffer());
      add(written, regrow.getBuffer());
    } else if (auto bind = dyn_cast<BindOp>(op); bind && bind.getBuffer())
      add(read, bind.getBuffer());
    else if (auto recurrence = dyn_cast<RecurrenceOp>(op)) {
      for (Value initial : recurrence.getInitial())
        add(read, initial);
      for (ValueRange buffers : {ValueRange(recurrence.getSpare()), ValueRange(recurrence.getFinals())})
        for (Value buffer : buffers)
          add(written, buffer);
    } else if (auto call = dyn_cast<CallOp>(op)) {
      for (Value buffer : call.getRead())
        add(read, buffer);
      for (Value buffer : call.getWritten())
        add(written, buffer);
    } else if (auto store = dyn_cast<StoreOp>(op)) {
      add(written, store.getBuffer());
      if (store.getCombine())
        add(read, store.getBuffer());
    }
  });
}
