//===- PrimBuilder.h - builds prim ops the way operators are written -*-C++-*-//
//
// The vocabulary of decompositions. Methods check, broadcast, infer the result's
// shape and fold what is known (SymbolicFold.h), so that a decomposition reads
// like the operator's specification:
//
//   Value m = n.reduce(ReduceKind::Max, x, {axis}, /*keepDims=*/true);
//   Value e = n.exp(n.sub(x, m));
//   return n.div(e, n.reduce(ReduceKind::Sum, e, {axis}, true));
//
// Errors: a method that meets an error of the model reports it once (`fail`) and
// returns a null value; every method accepts null operands and then returns null.
// So decompositions need no checks of their own between two calls. `dim` and
// `rank` of a null value are 1 and 0.
//
//===----------------------------------------------------------------------===//
#ifndef PTC_LOWERING_DECOMP_PRIMBUILDER_H
#define PTC_LOWERING_DECOMP_PRIMBUILDER_H

#include "ir/Diagnostics.h"
#include "ir/prim/Elements.h"
#include "ir/prim/Prim.h"
#include "lowering/decomp/ElementTypes.h"
#include "lowering/decomp/ShapeScope.h"
#include <vector>

namespace ptc::decomp {

using mlir::Type;
using mlir::Value;
using prim::ArgKind;
using prim::PadKind;
using prim::ReduceKind;
using prim::ScatterKind;
using Dims = llvm::SmallVector<Expr>;
using Values = llvm::SmallVector<Value, 2>;
using Ints = llvm::SmallVector<int64_t>;

class PrimBuilder {
public:
  PrimBuilder(mlir::OpBuilder &builder, mlir::Location loc, ShapeScope &shapes)
      : shapes(shapes), builder(builder), loc(loc), outerPlace(shapes.setPlace({&builder, loc})) {}
  ~PrimBuilder() { shapes.setPlace(outerPlace); }
  PrimBuilder(const PrimBuilder &) = delete;

  //===--- Errors ---===//
  template <typename... Args> Value fail(DiagId id, Args &&...args) {
    constexpr llvm::StringLiteral onSizes =
        "if --dim or --shape set one of these sizes, correct it; otherwise the model does not fit together: "
        "export it again";
    return failWithHelp(id == DiagId::DimMismatch ? onSizes : "", id, std::forward<Args>(args)...);
  }
  template <typename... Args> Value failWithHelp(llvm::StringRef help, DiagId id, Args &&...args) {
    if (!failed) {
      mlir::InFlightDiagnostic diag = diagnose(loc, id, inSentence(std::forward<Args>(args))...);
      if (!help.empty())
        addHelp(diag, help);
    }
    failed = true;
    return {};
  }
  bool hasFailed() const { return failed; }
  /// Runs `build`, which says whether it succeeded. If it did not, nothing of it is reported or assumed, and `reports`
  /// has what it would have said.
  bool attempt(llvm::function_ref<bool()> build, std::vector<mlir::Diagnostic> &reports);
  /// Fails with what an attempt would have said.
  void report(std::vector<mlir::Diagnostic> reports);
  /// Types as ONNX writes them; all else as it is.
  template <typename T> static decltype(auto) inSentence(T &&value) {
    if constexpr (std::is_convertible_v<T, Type>)
      return describeType(value);
    else
      return std::forward<T>(value);
  }

  //===--- Looking at values ---===//
  mlir::MLIRContext *getContext() const { return shapes.getContext(); }
  mlir::Location getLoc() const { return loc; }
  mlir::OpBuilder &getBuilder() { return builder; }
  int64_t rank(Value x) const { return x ? prim::getRank(x) : 0; }
  Dims dims(Value x) const { return x ? prim::getDims(x) : Dims(); }
  Expr dim(Value x, int64_t axis) const;
  Type elementType(Value x) const;
  bool isFloat(Value x) const { return llvm::isa<mlir::FloatType>(elementType(x)); }
  bool isInteger(Value x) const;
  bool isBool(Value x) const { return elementType(x).isInteger(1); }
  bool isComplex(Value x) const { return prim::isComplex(elementType(x)); }
  bool isString(Value x) const { return llvm::isa<prim::StringType>(elementType(x)); }
  bool isSequence(Value x) const { return llvm::isa<prim::SequenceType>(elementType(x)); }
  bool isUnsigned(Value x) const { return elementType(x).isUnsignedInteger(); }
  std::string describe(llvm::ArrayRef<Expr> dims) const;
  /// The non-negative axis, or nothing after a diagnostic.
  std::optional<int64_t> normalizeAxis(int64_t axis, int64_t rank);
  /// Whether x has this axis, diagnosed if not; false for null.
  bool hasAxis(Value x, int64_t axis);
  /// All elements as expressions, row-major, where they are known (integers and booleans).
  std::optional<Dims> knownExprs(Value x) const;
  std::optional<Ints> knownInts(Value x) const;
  /// A single boolean as an expression that is 0 or 1.
  std::optional<Expr> knownCondition(Value x) const;
  /// All elements of a small float or integer constant.
  std::optional<llvm::SmallVector<double>> knownFloats(Value x) const;

  //===--- Types and constants ---===//
  Type f32() { return builder.getF32Type(); }
  Type f64() { return builder.getF64Type(); }
  Type i1() { return builder.getI1Type(); }
  Type si64() { return builder.getIntegerType(64, /*isSigned=*/true); }
  Type si32() { return builder.getIntegerType(32, true); }
  Type si8() { return builder.getIntegerType(8, true); }
  Type ui8() { return builder.getIntegerType(8, false); }
  Type ui64() { return builder.getIntegerType(64, false); }
  Expr expr(int64_t value) const { return shapes.constant(value); }
  Dims exprs(llvm::ArrayRef<int64_t> values) const;
  Value constant(mlir::DenseElementsAttr value);
  /// A rank-0 constant, converted to `type` with saturation.
  Value scalar(double value, Type type);
  Value scalarLike(double value, Value x) { return x ? scalar(value, elementType(x)) : Value(); }
  Value lowest(Type type);  // -inf, or the smallest integer
  Value highest(Type type); // +inf, or the largest integer
  /// A constant si64 tensor of rank 1.
  Value intVector(llvm::ArrayRef<int64_t> values);
  Value floatVector(llvm::ArrayRef<double> values, Type type);
  Type stringType() { return prim::StringType::get(getContext()); }
  /// A constant tensor of rank 1, or (`isScalar`) of rank 0.
  Value strings(llvm::ArrayRef<std::string> values, bool isScalar = false);
  /// `value` (rank 0) at every index.
  Value fill(Value value, llvm::ArrayRef<Expr> dims) { return broadcastTo(value, dims); }
  /// An integer tensor of rank 0 (`isScalar`) or 1 whose elements are expressions.
  Value fromExprs(llvm::ArrayRef<Expr> values, Type type, bool isScalar = false);
  Value iota(int64_t axis, llvm::ArrayRef<Expr> dims, Type type);

  //===--- Sizes that are known only when the program runs ---===//
  /// The value of a scalar integer as an expression: what it is known to be, or a symbol that the program binds here. A
  /// value below `least` or above `atMost` (null: no bound is known) ends the run.
  Expr bind(Value scalar, Expr atMost, int64_t least = 0);
  /// An expression over bound symbols as a symbol of its own, not negative: what dims of results should be.
  Expr settle(Expr size);
  Dims settle(llvm::ArrayRef<Expr> sizes);
  /// The positions, ascending, at which a boolean vector is true, as integers of `type` (null: 64 bits): never more
  /// than `most`, if that is given.
  Value findTrue(Value mask, Expr most = {}, Type type = {});

  //===--- Pointwise, with numpy broadcasting ---===//
  template <typename Op> Value unary(Value x) { return x ? fold(Op::create(builder, loc, x.getType(), x)) : Value(); }
  template <typename Op> Value binary(Value a, Value b) {
    return broadcast(a, b) ? fold(Op::create(builder, loc, a.getType(), a, b)) : Value();
  }
  template <typename Op> Value predicate(Value a, Value b) {
    return broadcast(a, b) ? fold(Op::create(builder, loc, boolLike(a), a, b)) : Value();
  }
  template <typename Op> Value test(Value x) { return x ? fold(Op::create(builder, loc, boolLike(x), x)) : Value(); }
  Value add(Value a, Value b) { return binary<prim::AddOp>(a, b); }
  Value sub(Value a, Value b) { return binary<prim::SubOp>(a, b); }
  Value mul(Value a, Value b) { return binary<prim::MulOp>(a, b); }
  Value div(Value a, Value b) { return binary<prim::DivOp>(a, b); }
  Value maximum(Value a, Value b) { return binary<prim::MaximumOp>(a, b); }
  Value minimum(Value a, Value b) { return binary<prim::MinimumOp>(a, b); }
  Value logicalAnd(Value a, Value b) { return binary<prim::AndOp>(a, b); }
  Value logicalOr(Value a, Value b) { return binary<prim::OrOp>(a, b); }
  Value logicalNot(Value x) { return unary<prim::NotOp>(x); }
  Value add(Value a, double b) { return add(a, scalarLike(b, a)); }
  Value sub(Value a, double b) { return sub(a, scalarLike(b, a)); }
  Value mul(Value a, double b) { return mul(a, scalarLike(b, a)); }
  Value div(Value a, double b) { return div(a, scalarLike(b, a)); }
  Value neg(Value x) { return unary<prim::NegOp>(x); }
  Value abs(Value x) { return unary<prim::AbsOp>(x); }
  Value exp(Value x) { return unary<prim::ExpOp>(x); }
  Value log(Value x) { return unary<prim::LogOp>(x); }
  Value sqrt(Value x) { return unary<prim::SqrtOp>(x); }
  Value rsqrt(Value x) { return unary<prim::RsqrtOp>(x); }
  Value tanh(Value x) { return unary<prim::TanhOp>(x); }
  Value erf(Value x) { return unary<prim::ErfOp>(x); }
  Value sigmoid(Value x) { return unary<prim::SigmoidOp>(x); }
  Value relu(Value x) { return unary<prim::ReluOp>(x); }
  Value clamp(Value x, double low, double high);
  Value equal(Value a, Value b);
  Value less(Value a, Value b) { return predicate<prim::LtOp>(a, b); }
  Value lessEqual(Value a, Value b) { return predicate<prim::LeOp>(a, b); }
  Value isNan(Value x) { return test<prim::IsNanOp>(x); }
  Value select(Value condition, Value a, Value b);
  Value convert(Value x, Type elementType);
  /// The same bits as another type of the same width.
  Value bitcast(Value x, Type elementType);
  /// The real and the imaginary parts of complex numbers, and complex numbers of these.
  std::pair<Value, Value> complexParts(Value x);
  Value complex(Value re, Value im);
  Value convertLike(Value x, Value like) { return like ? convert(x, elementType(like)) : Value(); }

  //===--- Functions of the runtime (ir/prim/PrimCalls.def) ---===//
  Values call(llvm::StringRef callee, llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Expr> numbers,
              llvm::ArrayRef<Type> results);
  /// One result, of these dims and elements.
  Value call(llvm::StringRef callee, llvm::ArrayRef<Value> inputs, llvm::ArrayRef<Expr> numbers,
             llvm::ArrayRef<Expr> dims, Type elementType);
  /// The product of x's dims.
  Expr elementCount(Value x) const { return product(getContext(), dims(x)); }

  //===--- Views ---===//
  /// Operand dim i becomes result dim axes[i]; undecided equalities become guards. `mayStretch`: a dim of unknown size
  /// may turn out to be 1.
  Value broadcast(Value x, llvm::ArrayRef<int64_t> axes, llvm::ArrayRef<Expr> dims, bool mayStretch = false);
  /// Numpy's: aligned at the last dim.
  Value broadcastTo(Value x, llvm::ArrayRef<Expr> dims);
  bool broadcast(Value &a, Value &b);
  bool broadcast(llvm::MutableArrayRef<Value> operands);
  std::optional<Dims> broadcastDims(llvm::ArrayRef<Expr> a, llvm::ArrayRef<Expr> b);
  Value reshape(Value x, llvm::ArrayRef<Expr> dims);
  /// One dim may be null: it is what is left.
  Value reshapeInferred(Value x, Dims dims);
  Value transpose(Value x, llvm::ArrayRef<int64_t> permutation);
  Value swapAxes(Value x, int64_t a, int64_t b);
  Value unsqueeze(Value x, llvm::ArrayRef<int64_t> axes); // axes of the result, ascending
  Value squeeze(Value x, llvm::ArrayRef<int64_t> axes);
  Value slice(Value x, llvm::ArrayRef<Expr> starts, llvm::ArrayRef<int64_t> steps, llvm::ArrayRef<Expr> dims);
  Value sliceAxis(Value x, int64_t axis, Expr start, Expr size, int64_t step = 1);
  /// Element `index` along `axis`, the axis dropped.
  Value at(Value x, int64_t axis, int64_t index);
  Value pad(Value x, Value value, llvm::ArrayRef<Expr> low, llvm::ArrayRef<Expr> high,
            PadKind kind = PadKind::Constant);
  Value concat(llvm::ArrayRef<Value> inputs, int64_t axis);
  Value stack(llvm::ArrayRef<Value> inputs, int64_t axis);

  //===--- Indexing ---===//
  /// Adds the dim's size to negative indices (skipped for indices known not to be negative).
  Value wrapIndices(Value indices, Expr size);
  Value gather(Value x, Value indices, int64_t axis);
  Value gatherElements(Value x, Value indices, int64_t axis);
  Value gatherNd(Value x, Value indices, int64_t batchDims);
  Value scatterElements(Value x, Value indices, Value updates, int64_t axis, ScatterKind kind);
  Value scatterNd(Value x, Value indices, Value updates, ScatterKind kind);

  //===--- Reductions, windows, contractions ---===//
  Value reduce(ReduceKind kind, Value x, llvm::ArrayRef<int64_t> axes, bool keepDims);
  Value sum(Value x, llvm::ArrayRef<int64_t> axes, bool keepDims) { return reduce(ReduceKind::Sum, x, axes, keepDims); }
  Value mean(Value x, llvm::ArrayRef<int64_t> axes, bool keepDims);
  Value argReduce(ArgKind kind, Value x, int64_t axis, bool selectLast, bool keepDims);
  Value scan(ReduceKind kind, Value x, int64_t axis, bool exclusive, bool reverse);
  /// Values and si64 indices, the first `count` of each.
  std::pair<Value, Value> sort(Value x, int64_t axis, bool descending, Expr count);
  struct Window {
    Ints size, strides, dilations;
    Dims low;
    Dims resultDims; // spatial dims of the result
  };
  Value windowReduce(ReduceKind kind, Value x, const Window &window);
  Value convolution(Value x, Value w, const Window &window, int64_t groups, bool transposed = false);
  /// numpy.matmul
  Value matmul(Value a, Value b);
  /// The same in operators that are no products to their users, as transforms: --autocast leaves it as it is.
  Value innerMatmul(Value a, Value b);
  Value softmax(Value x, int64_t axis);

  /// Diagnoses constant dims that are negative or that no machine can hold.
  Type resultType(llvm::ArrayRef<Expr> dims, Type elementType);

  ShapeScope &shapes;

protected:
  /// The op's result, or what it is known to be; null after a diagnostic.
  Value fold(mlir::Operation *op);
  Type boolLike(Value x);
  /// Reinterprets dims that a guard made equal.
  Value recast(Value x, llvm::ArrayRef<Expr> dims);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  bool failed = false;

private:
  ShapeScope::Place outerPlace;
};

} // namespace ptc::decomp

#endif // PTC_LOWERING_DECOMP_PRIMBUILDER_H
