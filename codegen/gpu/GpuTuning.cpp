//===- GpuTuning.cpp - numbers worth measuring beside the plan's ----------===//
//
// The planners' estimates are right within some tens of per cent, and what they hold for nearly as good is often
// better: which blocks meet on a multiprocessor, what is in L2 when a kernel begins, how long a barrier of a cluster
// takes. So the alternatives of a product are the next best by the estimate, of both families of templates; other
// kernels have so few numbers that each is moved from where the plan has it. Before all stands a library that can
// compute the kernel (LibraryCall.h).
//
// What is proposed counts only if it makes another plan: each proposal is planned, on a copy of the kernel.
//
//===----------------------------------------------------------------------===//
#include "codegen/gpu/GpuTuning.h"
#include "codegen/gpu/CudaLevels.h"
#include "codegen/gpu/LibraryCall.h"
#include "codegen/gpu/MmaAttention.h"
#include "codegen/gpu/StreamedProduct.h"
#include "codegen/gpu/WgmmaPlan.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;
using namespace ptc;
using namespace ptc::gpu;

static constexpr size_t mostProducts = 16; // alternatives of a product: a compile of the model each

namespace {

class Alternatives {
public:
  Alternatives(loop::KernelOp kernel, StringRef level) : kernel(kernel), builder(kernel.getContext()), level(level) {
    planned = plan({});
    seen.push_back(configOf(*planned));
  }
  /// The kernel as planned without numbers.
  loop::KernelOp getPlanned() { return *planned; }
  bool hasWarpgroupPlan() { return hasWarpgroups(level) && getWgmmaTile(*planned); }
  int64_t getPlannedNumber(StringRef name) { return planned->getConfigAttr().getAs<IntegerAttr>(name).getInt(); }

  void add(ArrayRef<std::pair<StringRef, int64_t>> numbers) {
    SmallVector<NamedAttribute> entries;
    for (auto [name, number] : numbers)
      entries.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(number)));
    DictionaryAttr dictionary = builder.getDictionaryAttr(entries);
    OwningOpRef<loop::KernelOp> other = plan(dictionary);
    DictionaryAttr config = configOf(*other);
    if (llvm::is_contained(seen, config))
      return;
    seen.push_back(config);
    found.push_back(dictionary);
  }
  /// Half and twice of what the plan has.
  void scale(StringRef name, int64_t chosen) {
    add({{name, chosen * 2}});
    if (chosen > 1)
      add({{name, chosen / 2}});
  }
  size_t size() const { return found.size(); }
  SmallVector<DictionaryAttr> take() { return std::move(found); }

private:
  OwningOpRef<loop::KernelOp> plan(DictionaryAttr numbers) {
    OwningOpRef<loop::KernelOp> copy = kernel.clone();
    if (numbers)
      copy.get()->setAttr(loop::tunedAttr, numbers);
    planKernel(*copy);
    return copy;
  }
  /// What of the plan the level's code is made of.
  DictionaryAttr configOf(loop::KernelOp plan) {
    NamedAttrList config(plan.getConfigAttr());
    if (hasWarpgroups(level)) {
      if (Attribute tile = config.get("wgmma")) {
        NamedAttrList own;
        own.set("wgmma", tile);
        for (StringRef library : {tuned::cublaslt, tuned::cudnn})
          if (Attribute chosen = config.get(library))
            own.set(library, chosen);
        return own.getDictionary(builder.getContext());
      }
    } else {
      config.erase("wgmma");
    }
    return config.getDictionary(builder.getContext());
  }

  loop::KernelOp kernel;
  Builder builder;
  StringRef level;
  OwningOpRef<loop::KernelOp> planned;
  SmallVector<DictionaryAttr> seen, found;
};

/// A product's tile of either family.
struct Product {
  double cycles;
  int64_t rows, columns, splits, together; // together 0: of warps
};

} // namespace

static void addProducts(Alternatives &found, loop::ContractionOp op, StringRef level) {
  MmaKind kind = *findMmaKind(op);
  SmallVector<Product> products;
  for (const MmaCandidate &each : listMmaTiles(op, kind))
    products.push_back({each.cycles, each.tile.m, each.tile.n, each.splits, 0});
  if (hasWarpgroups(level))
    for (const WgmmaCandidate &each : listWgmmaTiles(op, kind))
      products.push_back({each.cycles, each.tile.m, each.tile.n, each.tile.splits, each.tile.together});
  llvm::stable_sort(products, [](const Product &a, const Product &b) { return a.cycles < b.cycles; });
  for (const Product &each : products) {
    if (found.size() == mostProducts)
      break;
    SmallVector<std::pair<StringRef, int64_t>> numbers = {
        {tuned::tileRows, each.rows}, {tuned::tileColumns, each.columns}, {tuned::splits, each.splits}};
    if (each.together > 0)
      numbers.append({{tuned::together, each.together}, {tuned::warpgroups, 1}});
    else if (hasWarpgroups(level))
      numbers.push_back({tuned::warpgroups, 0});
    found.add(numbers);
  }
  if (!found.hasWarpgroupPlan())
    for (int64_t stages : {3, 4, 5})
      found.add({{tuned::stages, stages}});
}

static void addStreamed(Alternatives &found, DictionaryAttr config) {
  StreamedTile tile = StreamedTile::fromAttribute(config);
  found.scale(tuned::across, tile.across);
  found.scale(tuned::streamThreads, tile.threads);
  found.add({{tuned::across, tile.across * 2}, {tuned::streamThreads, tile.threads * 2}});
  found.add({{tuned::across, tile.across / 2}, {tuned::streamThreads, tile.threads / 2}});
  found.add({{tuned::streamed, 0}});
}

static void addAttention(Alternatives &found, DictionaryAttr config) {
  AttentionTile tile = AttentionTile::fromAttribute(config);
  for (int64_t warps : {tile.warps, tile.warps / 2, tile.warps * 2})
    for (int64_t groups : {tile.groups, tile.groups * 2, tile.groups / 2})
      if (groups <= warps && groups > 0)
        found.add({{tuned::keyGroups, groups}, {tuned::warps, warps}});
  for (int64_t keys = tile.keys * 2; keys >= tile.groups; keys /= 2)
    found.add({{tuned::blockKeys, keys}, {tuned::keyGroups, tile.groups}, {tuned::warps, tile.warps}});
}

static void addRows(Alternatives &found) {
  int64_t threads = found.getPlannedNumber("threads");
  found.scale(tuned::rowThreads, threads);
  found.add({{tuned::rowThreads, threads * 4}});
  found.add({{tuned::rowThreads, threads / 4}});
  for (int64_t rows : {1, 2, 4, 8})
    found.add({{tuned::blockRows, rows}, {tuned::rowThreads, warpSize}});
}

static void addPoints(Alternatives &found) {
  found.scale(tuned::blockThreads, found.getPlannedNumber("threads"));
  found.add({{tuned::blockThreads, 2 * warpSize}});
  found.scale(tuned::lanes, found.getPlannedNumber("lanes"));
}

SmallVector<DictionaryAttr> gpu::listAlternatives(loop::KernelOp kernel, StringRef level) {
  if (getNodes(kernel).empty())
    return {};
  Alternatives found(kernel, level);
  loop::KernelOp planned = found.getPlanned();
  DictionaryAttr config = planned.getConfigAttr();
  StringRef layout = config.getAs<StringAttr>("layout");
  for (loop::KernelOp each : {kernel, planned}) // a plan may make another op of it
    if (StringRef library = findLibrary(each); !library.empty())
      found.add({{library, 1}});
  if (layout == "mma")
    addProducts(found, *planned.getBlock().getOps<loop::ContractionOp>().begin(), level);
  else if (layout == "streamed")
    addStreamed(found, config);
  else if (layout == "attention")
    addAttention(found, config);
  else if (layout == "rows")
    addRows(found);
  else if (layout == "points")
    addPoints(found);
  return found.take();
}
