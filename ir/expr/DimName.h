//===- DimName.h - symbols of dims ------------------------------*- C++ -*-===//
#ifndef PTC_IR_EXPR_DIMNAME_H
#define PTC_IR_EXPR_DIMNAME_H

#include <cstdint>
#include <string>

namespace ptc {

/// The symbol of a dim of the iteration domain: "d3".
inline std::string dimName(int64_t index) { return "d" + std::to_string(index); }

} // namespace ptc

#endif // PTC_IR_EXPR_DIMNAME_H
