//===- ShareScalars.cpp - kernels that differ in scalars alone ------------===//
//
// The layers of a quantised model do the same with scales and zero points of their own:
//
//   mulf %x, 0.0137 : f32          addi %y, 121 : i32
//
// Kernels that are equal but for such constants become one, to which each launch says its own, as the bits of symbols:
//
//   mulf %x, s2                    addi %y, s3                    (ToldNumbers.h)
//
// Constants that are the same in all of the kernels stay where they are, and so does what occurs once. Places whose
// constants are equal in each of the kernels share a symbol.
//
// A constant may be told if code does not depend on its value: as an operand of a sum, a difference, a product, a
// comparison, a choice or as a divisor. 0 and 1 (sigmoids are known by it), powers of two that divide (which is a
// product) and numbers that are nearly infinite or denormal stay. So do those that are read by the operands of a
// product (their conversions are tabulated) or within an attention (scales become part of its exponential), in
// recurrences, and what a comparison of floats chooses is computed from: its value at 0 tells whether denormal numbers
// count as 0 (codegen/cpu/FloatMode.cpp). What a kernel computes is the same to the bit. Kernels that differ in more
// scalars than have room in registers stay apart.
//
// Quantised MiniLM has 19 kernels for 78 then. On CPUs: there scalars take a register each, in front of all loops.
//
//===----------------------------------------------------------------------===//
#include "compiler/schedule/ShareScalars.h"
#include "compiler/schedule/KernelNames.h"
#include "ir/loop/Recurrence.h"
#include "ir/loop/ToldNumbers.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::loop;

namespace {

constexpr size_t mostSymbols = 16; // of one kernel: about as many vectors as the code around them leaves registers for
constexpr int largestExponent = 100;

struct Member {
  KernelOp kernel;
  SmallVector<arith::ConstantOp> scalars; // in the order of the kernel's ops
};

using Launches = llvm::StringMap<SmallVector<LaunchOp>>;

} // namespace

static bool isUsual(Attribute value) {
  if (auto number = dyn_cast<IntegerAttr>(value))
    return number.getType().isInteger(32) && !number.getValue().isZero();
  auto number = dyn_cast<FloatAttr>(value);
  return number && number.getType().isF32() && number.getValue().isFiniteNonZero() &&
         !number.getValue().isExactlyValue(1) && std::abs(ilogb(number.getValue())) < largestExponent;
}

static bool isPowerOfTwo(Attribute value) {
  auto number = dyn_cast<FloatAttr>(value);
  return number && number.getValue().getExactInverse(nullptr);
}

static bool takesAnyScalar(OpOperand &use, Attribute value) {
  Operation *op = use.getOwner();
  if (isa<arith::DivFOp>(op))
    return use.getOperandNumber() == 1 && !isPowerOfTwo(value);
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::CmpFOp, arith::SelectOp, arith::AddIOp, arith::SubIOp>(
      op);
}

static bool isNormalConstant(Value value) {
  APFloat number(0.0);
  return matchPattern(value, m_ConstantFloat(&number)) && number.isFiniteNonZero() && !number.isDenormal();
}

/// Whether the select chooses by a comparison of floats of which none of the values is an operand, nor a constant that
/// no denormal number comes near.
static bool choosesByOthers(arith::SelectOp select, ValueRange values) {
  auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
  return compare && llvm::none_of(compare->getOperands(), [&](Value operand) {
           return isNormalConstant(operand) || llvm::is_contained(values, operand);
         });
}

/// Whether a few steps from the value lead to what a comparison of floats chooses, and not by what it compares.
static bool entersChoice(Value value, SmallVector<Value> path = {}) {
  constexpr size_t mostSteps = 7;
  path.push_back(value);
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (auto select = dyn_cast<arith::SelectOp>(user))
      return choosesByOthers(select, path);
    return path.size() < mostSteps &&
           isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, math::AbsFOp, math::ExpOp, math::ExpM1Op>(
               user) &&
           entersChoice(user->getResult(0), path);
  });
}

static bool mayBeTold(arith::ConstantOp constant) {
  if (constant->getParentOfType<AttentionOp>() || constant->getParentOfType<RecurrenceOp>())
    return false;
  if (auto product = constant->getParentOfType<ContractionOp>())
    if (!product.getEpilogue().isAncestor(constant->getParentRegion()))
      return false;
  return isUsual(constant.getValue()) && !entersChoice(constant) &&
         llvm::all_of(constant->getUses(), [&](OpOperand &use) { return takesAnyScalar(use, constant.getValue()); });
}

static SmallVector<arith::ConstantOp> collectScalars(KernelOp kernel) {
  SmallVector<arith::ConstantOp> scalars;
  kernel.getBody().walk([&](arith::ConstantOp constant) {
    if (mayBeTold(constant))
      scalars.push_back(constant);
  });
  return scalars;
}

static void replaceByNumber(arith::ConstantOp constant, Expr symbol) {
  OpBuilder b(constant);
  Type bits = b.getIntegerType(constant.getType().getIntOrFloatBitWidth());
  auto index = IndexOp::create(b, constant.getLoc(), symbol, ValueRange());
  index->setAttr(numberAttr, b.getUnitAttr());
  Value number = arith::TruncIOp::create(b, constant.getLoc(), bits, index);
  if (bits != constant.getType())
    number = arith::BitcastOp::create(b, constant.getLoc(), constant.getType(), number);
  constant.replaceAllUsesWith(number);
  constant.erase();
}

/// The kernel's text without its scalars.
static std::string getSkeleton(KernelOp kernel) {
  KernelOp copy = kernel.clone();
  for (arith::ConstantOp constant : collectScalars(copy))
    replaceByNumber(constant, Expr::symbol(kernel.getContext(), "?"));
  std::string text = getKernelText(copy);
  copy.erase();
  return text;
}

static int64_t getBits(arith::ConstantOp constant) {
  auto number = dyn_cast<FloatAttr>(constant.getValue());
  APInt bits = number ? number.getValue().bitcastToAPInt() : cast<IntegerAttr>(constant.getValue()).getValue();
  return int64_t(bits.getZExtValue()); // symbols are none below 0
}

static void tell(LaunchOp launch, StringAttr kernel, ArrayRef<int64_t> numbers) {
  MLIRContext *context = launch.getContext();
  SmallVector<Expr> values = prim::getExprs(launch.getSymbols());
  for (int64_t number : numbers)
    values.push_back(Expr::constant(context, number));
  launch.setSymbolsAttr(prim::getExprArray(context, values));
  launch.setKernelAttr(FlatSymbolRefAttr::get(kernel));
}

/// Makes the kernels one.
static void share(MutableArrayRef<Member> members, Launches &launches) {
  KernelOp kernel = members[0].kernel;
  MLIRContext *context = kernel.getContext();
  SmallVector<SmallVector<int64_t>> symbols; // what each stands for in the members
  SmallVector<std::pair<arith::ConstantOp, size_t>> told;
  for (auto [place, constant] : llvm::enumerate(members[0].scalars)) {
    SmallVector<int64_t> numbers;
    for (const Member &member : members)
      numbers.push_back(getBits(member.scalars[place]));
    if (llvm::all_equal(numbers))
      continue;
    told.push_back({constant, size_t(llvm::find(symbols, numbers) - symbols.begin())});
    if (told.back().second == symbols.size())
      symbols.push_back(numbers);
  }
  if (symbols.size() > mostSymbols)
    return;
  SmallVector<Attribute> names(kernel.getSymbols().getValue());
  auto nameOf = [known = names.size()](size_t symbol) { return "s" + std::to_string(known + symbol); };
  for (auto [constant, symbol] : told)
    replaceByNumber(constant, Expr::symbol(context, nameOf(symbol)));
  for (size_t symbol = 0; symbol < symbols.size(); ++symbol)
    names.push_back(StringAttr::get(context, nameOf(symbol)));
  kernel.setSymbolsAttr(ArrayAttr::get(context, names));
  auto name = StringAttr::get(context, makeKernelName(getKernelStem(kernel.getSymName()), getKernelText(kernel)));
  for (auto [number, member] : llvm::enumerate(members)) {
    for (LaunchOp launch : launches.lookup(member.kernel.getSymName()))
      tell(launch, name, llvm::map_to_vector(symbols, [&](const auto &numbers) { return numbers[number]; }));
    if (number)
      member.kernel.erase();
  }
  kernel.setSymNameAttr(name);
}

void loop::shareScalars(ModuleOp module) {
  SmallVector<SmallVector<Member>> families;
  llvm::StringMap<size_t> numbers;
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    SmallVector<arith::ConstantOp> scalars = collectScalars(kernel);
    if (scalars.empty())
      continue;
    auto [number, isNew] = numbers.try_emplace(getSkeleton(kernel), families.size());
    if (isNew)
      families.emplace_back();
    families[number->second].push_back({kernel, scalars});
  }
  Launches launches;
  module.walk([&](LaunchOp launch) { launches[launch.getKernel()].push_back(launch); });
  for (SmallVector<Member> &members : families)
    if (members.size() > 1)
      share(members, launches);
}
