// Pointwise nodes over the same points that run one after the other and have the same readers become one node, as the copies of an
// attention's keys and values; not where they run over other points.
// RUN: ptc-opt %s --ptc-lower-prim-to-loop --ptc-elide-copies --ptc-assign-layouts \
// RUN:   --ptc-linearize-accesses --ptc-normalize-nodes --ptc-fuse-nodes=remarks=1 2>&1 | FileCheck %s

// CHECK:       remark: not beside the kernel before it: they run over other points
// CHECK-LABEL: loop.program @caches
// CHECK:         loop.fused
// CHECK-NEXT:      loop.pointwise [2, 16*past]
// CHECK-NEXT:        %[[K:.*]] = loop.load
// CHECK-NEXT:        loop.store %[[K]]
// CHECK-NEXT:        %[[V:.*]] = loop.load
// CHECK-NEXT:        loop.store %[[V]]
// CHECK:         loop.fused
// CHECK-NEXT:      loop.pointwise [2, 16]
// CHECK-COUNT-2:     arith.negf
// CHECK:         loop.fused
// CHECK-NEXT:      loop.attention
// CHECK-NOT:     loop.fused
#past = #prim.dims<[2, past, 16]>
#all = #prim.dims<[2, past + 1, 16]>
func.func @caches(%q: tensor<2x1x16xf32>, %k: tensor<2x1x16xf32>, %v: tensor<2x1x16xf32>, %pk: tensor<2x?x16xf32, #past>,
                  %pv: tensor<2x?x16xf32, #past>) -> (tensor<2x1x16xf32>, tensor<2x?x16xf32, #all>, tensor<2x?x16xf32, #all>)
    attributes {prim.symbols = {past = #prim.symbol<1, 64, divisor = 1, hint = 8>}} {
  %nk = prim.neg %k : tensor<2x1x16xf32>
  %nv = prim.neg %v : tensor<2x1x16xf32>
  %ak = prim.concat %pk, %nk axis 1 : (tensor<2x?x16xf32, #past>, tensor<2x1x16xf32>) -> tensor<2x?x16xf32, #all>
  %av = prim.concat %pv, %nv axis 1 : (tensor<2x?x16xf32, #past>, tensor<2x1x16xf32>) -> tensor<2x?x16xf32, #all>
  %a = prim.attention %q, %ak, %av scale 1.0 : (tensor<2x1x16xf32>, tensor<2x?x16xf32, #all>, tensor<2x?x16xf32, #all>) -> tensor<2x1x16xf32>
  return %a, %ak, %av : tensor<2x1x16xf32>, tensor<2x?x16xf32, #all>, tensor<2x?x16xf32, #all>
}
