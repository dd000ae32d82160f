//===- MemoryOrder.h - in which order a node's dims run through memory ----===//
#ifndef PTC_LOWERING_PRIM_TO_LOOP_MEMORYORDER_H
#define PTC_LOWERING_PRIM_TO_LOOP_MEMORYORDER_H

#include "ir/loop/Loop.h"

namespace ptc::loop {

/// For each dim of the node's domain, the place that it has in the memory order of the largest buffer that the node
/// reads and that has a layout, weights and constants aside: 0 is the outermost. An index that several dims share (a
/// pixel and a window's offset) gives all of them its place; a dim that is not read has that of the dim before it.
/// Of a pointwise node that reads several of which none has all dims (all pairs of two rows), the places are those in
/// the domain. Empty if the node reads no such buffer.
llvm::SmallVector<int64_t> getMemoryPlaces(mlir::Operation *node, const SymbolValues &hints);

/// The same of a buffer with a layout that a node with `rank` dims writes.
llvm::SmallVector<int64_t> getPlacesOfStore(StoreOp store, unsigned rank);

/// The dims of a buffer, outermost first, if it is to run as the dims in its indices do: `places` is by dim of the
/// node's domain. Of several dims in one index the innermost decides. An index without dims that is `load`'s and
/// indirect has those of what it is computed from.
llvm::SmallVector<int64_t> getBufferOrder(llvm::ArrayRef<Expr> indices, llvm::ArrayRef<int64_t> places,
                                          LoadOp load = {});

/// The dim of the buffer along which the load walks innermost, if the node is a convolution that adds up many of its
/// elements for each pixel of a window: memory should run along it. Few channels (of pictures), 1 x 1 convolutions, one
/// or two columns, and few of windows that lie side by side have none.
std::optional<unsigned> getChannels(ContractionOp node, LoadOp load);

/// The dim of an image along which a pointwise node gathers rows, at places that are read, if memory should run along
/// it: the rows are long, and the node's loads of the image together take as many elements as it has.
std::optional<unsigned> getGatheredRows(PointwiseOp node, LoadOp load, const SymbolValues &hints);

} // namespace ptc::loop

#endif // PTC_LOWERING_PRIM_TO_LOOP_MEMORYORDER_H
