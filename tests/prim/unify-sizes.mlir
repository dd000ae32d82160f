// RUN: ptc-opt %s --ptc-unify-sizes | FileCheck %s

// The two names of the batch become the first; the argument keeps its type, and the guard stays.
// CHECK: func.func @f(%[[X:.*]]: tensor<?x8xf32, #prim.dims<[batch, 8]>>, %[[M:.*]]: tensor<?x8xf32, #prim.dims<[mask_0, 8]>>)
// CHECK-SAME: -> tensor<?x8xf32, #prim.dims<[batch, 8]>>
// CHECK-SAME: prim.guards = [#prim.expr<eq(batch, mask_0)>]
// CHECK-NEXT: %[[V:.*]] = prim.reshape %[[M]] : {{.*}}[mask_0, 8]{{.*}} -> {{.*}}[batch, 8]
// CHECK-NEXT: %[[R:.*]] = prim.reshape %[[V]] : {{.*}}[batch, 8]{{.*}} -> {{.*}}[batch, 8]
// CHECK-NEXT: prim.add %[[X]], %[[R]]
func.func @f(%x: tensor<?x8xf32, #prim.dims<[batch, 8]>>, %m: tensor<?x8xf32, #prim.dims<[mask_0, 8]>>)
    -> tensor<?x8xf32, #prim.dims<[batch, 8]>> attributes {prim.guards = [#prim.expr<eq(batch, mask_0)>]} {
  %r = prim.reshape %m : tensor<?x8xf32, #prim.dims<[mask_0, 8]>> -> tensor<?x8xf32, #prim.dims<[batch, 8]>>
  %y = prim.add %x, %r : tensor<?x8xf32, #prim.dims<[batch, 8]>>
  return %y : tensor<?x8xf32, #prim.dims<[batch, 8]>>
}

// Sizes that only bounds relate stay two.
// CHECK: func.func @g
// CHECK: prim.guards = [#prim.expr<lt(b, a)>]
// CHECK: return {{.*}} : tensor<?xf32, #prim.dims<[b]>>
func.func @g(%x: tensor<?xf32, #prim.dims<[a]>>, %y: tensor<?xf32, #prim.dims<[b]>>)
    -> tensor<?xf32, #prim.dims<[b]>> attributes {prim.guards = [#prim.expr<lt(b, a)>]} {
  return %y : tensor<?xf32, #prim.dims<[b]>>
}
