//===- ExprStorage.h - storage of the expression attribute ------*- C++ -*-===//
#ifndef PTC_IR_EXPR_EXPRSTORAGE_H
#define PTC_IR_EXPR_EXPRSTORAGE_H

#include "ir/expr/Expr.h"
#include "mlir/IR/AttributeSupport.h"
#include "llvm/ADT/Hashing.h"

namespace ptc::detail {

struct ExprStorage : public mlir::AttributeStorage {
  struct KeyTy {
    ExprKind kind;
    int64_t value;
    llvm::StringRef symbol;
    llvm::ArrayRef<ExprAttr> operands;
    bool operator==(const KeyTy &o) const {
      return kind == o.kind && value == o.value && symbol == o.symbol && operands == o.operands;
    }
  };

  ExprStorage(const KeyTy &key) : key(key) {}
  bool operator==(const KeyTy &other) const { return key == other; }
  static llvm::hash_code hashKey(const KeyTy &key) {
    llvm::hash_code hash = llvm::hash_combine(key.kind, key.value, key.symbol);
    for (ExprAttr operand : key.operands)
      hash = llvm::hash_combine(hash, operand.getAsOpaquePointer());
    return hash;
  }
  static ExprStorage *construct(mlir::AttributeStorageAllocator &allocator, const KeyTy &key) {
    KeyTy copy{key.kind, key.value, allocator.copyInto(key.symbol), allocator.copyInto(key.operands)};
    return new (allocator.allocate<ExprStorage>()) ExprStorage(copy);
  }

  KeyTy key;
};

} // namespace ptc::detail

#endif // PTC_IR_EXPR_EXPRSTORAGE_H
