//===- ExprParse.cpp - the text form of expressions -----------------------===//
//
//   expr   ::= ['-'] term (('+' | '-') term)*
//   term   ::= factor ('*' factor)*
//   factor ::= integer | symbol | function '(' expr (',' expr)* ')' | '(' expr ')'
//   symbol ::= identifier | string
//
// A symbol is printed as an identifier where MLIR's lexer reads it as one, and
// quoted elsewhere. One grammar serves two sources of tokens: MLIR's parser (in
// attributes and ops) and plain text (flags, the manifest).
//
//===----------------------------------------------------------------------===//
#include "ir/expr/ConditionText.h"
#include "ir/expr/ExprPolynomial.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <utility>

using namespace ptc;
using namespace ptc::detail;

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static llvm::StringRef functionName(ExprKind kind) {
  switch (kind) {
  case ExprKind::FloorDiv:
    return "floordiv";
  case ExprKind::Mod:
    return "mod";
  case ExprKind::Min:
    return "min";
  case ExprKind::Max:
    return "max";
  case ExprKind::Lt:
    return "lt";
  case ExprKind::Eq:
    return "eq";
  case ExprKind::Select:
    return "select";
  case ExprKind::Constant:
  case ExprKind::Symbol:
  case ExprKind::Mul:
  case ExprKind::Add:
    break;
  }
  llvm_unreachable("not written as a function");
}

static bool isFunctionName(llvm::StringRef name) {
  return llvm::StringSwitch<bool>(name)
      .Cases({"floordiv", "ceildiv", "mod", "min", "max", "lt", "eq", "select"}, true)
      .Default(false);
}

/// MLIR's lexer takes these words for booleans and integer types.
static bool isReservedByMlir(llvm::StringRef name) {
  if (name == "true" || name == "false")
    return true;
  if (name.starts_with("si") || name.starts_with("ui"))
    name = name.drop_front();
  return name.size() > 1 && name.front() == 'i' && llvm::all_of(name.drop_front(), llvm::isDigit);
}

static bool isPlainSymbol(llvm::StringRef name) {
  if (name.empty() || llvm::isDigit(name.front()) || isFunctionName(name) || isReservedByMlir(name))
    return false;
  if (!llvm::isAlpha(name.front()) && name.front() != '_')
    return false;
  return llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; });
}

static void printSymbol(llvm::StringRef name, llvm::raw_ostream &os) {
  if (isPlainSymbol(name)) {
    os << name;
    return;
  }
  os << '"';
  llvm::printEscapedString(name, os);
  os << '"';
}

namespace {
enum class Form { Parsed, ForPeople };
} // namespace

static void print(Expr e, llvm::raw_ostream &os, Form form);

static void printAtoms(llvm::ArrayRef<Expr> atoms, llvm::raw_ostream &os, Form form) {
  llvm::interleave(
      atoms, os,
      [&](Expr atom) {
        bool isSum = atom.getKind() == ExprKind::Add;
        os << (isSum ? "(" : "");
        print(atom, os, form);
        os << (isSum ? ")" : "");
      },
      "*");
}

/// The terms with atoms first, then the constant: 2*x + y - 1.
static void printSum(Expr e, llvm::raw_ostream &os, Form form) {
  Polynomial terms;
  int64_t constant = splitConstant(e, &terms);
  if (constant)
    terms.push_back({constant, {}});
  bool isFirst = true;
  for (const Term &term : terms) {
    bool isNegative = term.coefficient < 0;
    uint64_t magnitude = isNegative ? -uint64_t(term.coefficient) : uint64_t(term.coefficient);
    os << (isFirst ? (isNegative ? "-" : "") : (isNegative ? " - " : " + "));
    isFirst = false;
    if (magnitude != 1 || term.atoms.empty())
      os << magnitude << (term.atoms.empty() ? "" : "*");
    printAtoms(term.atoms, os, form);
  }
}

/// What C and people have an operator for: "floor((n + 1) / 2)", "(n % 4)", "(m == 1 ? n : m)". False for others.
static bool printOperator(Expr e, llvm::raw_ostream &os) {
  auto print = [&](unsigned operand, bool isOfProduct = false) {
    ExprKind kind = e.getOperands()[operand].getKind();
    bool isInside = isOfProduct && (kind == ExprKind::Add || (operand == 1 && kind == ExprKind::Mul));
    os << (isInside ? "(" : "");
    ::print(e.getOperands()[operand], os, Form::ForPeople);
    os << (isInside ? ")" : "");
  };
  auto printBinary = [&](llvm::StringRef open, llvm::StringRef symbol, bool isOfProduct = false) {
    os << open;
    print(0, isOfProduct);
    os << symbol;
    print(1, isOfProduct);
    os << ')';
    return true;
  };
  switch (e.getKind()) {
  case ExprKind::FloorDiv:
    return printBinary("floor(", " / ", /*isOfProduct=*/true);
  case ExprKind::Mod:
    return printBinary("(", " % ", /*isOfProduct=*/true);
  case ExprKind::Lt:
    return printBinary("(", " < ");
  case ExprKind::Eq:
    return printBinary("(", " == ");
  case ExprKind::Select:
    os << '(';
    print(0);
    os << " ? ";
    print(1);
    os << " : ";
    print(2);
    os << ')';
    return true;
  default:
    return false;
  }
}

static void print(Expr e, llvm::raw_ostream &os, Form form) {
  switch (e.getKind()) {
  case ExprKind::Constant:
    os << e.getValue();
    return;
  case ExprKind::Symbol:
    printSymbol(e.getSymbol(), os);
    return;
  case ExprKind::Mul:
  case ExprKind::Add:
    printSum(e, os, form);
    return;
  default:
    if (form == Form::ForPeople && printOperator(e, os))
      return;
    os << functionName(e.getKind()) << '(';
    llvm::interleaveComma(e.getOperands(), os, [&](Expr operand) { print(operand, os, form); });
    os << ')';
  }
}

static std::string textOf(Expr e, Form form) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(e, os, form);
  return text;
}

std::string Expr::str() const { return textOf(*this, Form::Parsed); }

std::string ptc::formulaText(Expr e) { return textOf(e, Form::ForPeople); }

void ExprAttr::print(mlir::AsmPrinter &printer) const { printer << '<' << Expr(*this).str() << '>'; }

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {
/// Tokens from MLIR's parser.
class MlirTokens {
public:
  static constexpr bool isTrusted = true; // ptc has printed them
  explicit MlirTokens(mlir::AsmParser &parser) : parser(parser) {}

  bool consume(char c) {
    switch (c) {
    case '+':
      return succeeded(parser.parseOptionalPlus());
    case '-':
      return succeeded(parser.parseOptionalMinus());
    case '*':
      return succeeded(parser.parseOptionalStar());
    case '(':
      return succeeded(parser.parseOptionalLParen());
    case ')':
      return succeeded(parser.parseOptionalRParen());
    case ',':
      return succeeded(parser.parseOptionalComma());
    default:
      return false;
    }
  }
  /// Nothing where no integer starts; an integer above 64 bits is an error.
  std::optional<uint64_t> integer() {
    llvm::APInt value;
    mlir::OptionalParseResult result = parser.parseOptionalInteger(value);
    if (!result.has_value())
      return std::nullopt;
    if (failed(*result))
      return fail("expected an integer"), std::nullopt;
    if (value.getActiveBits() > 64)
      return fail("integer does not fit in 64 bits"), std::nullopt;
    return value.zextOrTrunc(64).getZExtValue();
  }
  bool name(std::string &result, bool &isQuoted) {
    llvm::StringRef keyword;
    isQuoted = false;
    if (succeeded(parser.parseOptionalKeyword(&keyword))) {
      result = keyword.str();
      return true;
    }
    isQuoted = true;
    return succeeded(parser.parseOptionalString(&result));
  }
  void fail(const llvm::Twine &message) {
    if (!hasFailed)
      parser.emitError(parser.getCurrentLocation(), message);
    hasFailed = true;
  }
  bool hasFailed = false;

private:
  mlir::AsmParser &parser;
};

/// Tokens from plain text.
class TextTokens {
public:
  static constexpr bool isTrusted = false;
  explicit TextTokens(llvm::StringRef text) : text(text) {}

  bool consume(char c) {
    text = text.ltrim();
    return text.consume_front(llvm::StringRef(&c, 1));
  }
  std::optional<uint64_t> integer() {
    text = text.ltrim();
    uint64_t value;
    if (text.empty() || !llvm::isDigit(text.front()))
      return std::nullopt;
    if (text.consumeInteger(10, value))
      return fail("integer does not fit in 64 bits"), std::nullopt;
    return value;
  }
  bool name(std::string &result, bool &isQuoted) {
    text = text.ltrim();
    isQuoted = !text.empty() && text.front() == '"';
    if (isQuoted)
      return quoted(result);
    llvm::StringRef word = text.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; });
    if (word.empty() || llvm::isDigit(word.front()) || word.front() == '.' || word.front() == '$')
      return false;
    text = text.drop_front(word.size());
    result = word.str();
    return true;
  }
  void fail(const llvm::Twine &) { hasFailed = true; }
  bool atEnd() { return text.ltrim().empty(); }
  bool hasFailed = false;

private:
  /// The escapes of llvm::printEscapedString: `\\` and two hexadecimal digits.
  bool quoted(std::string &result) {
    result.clear();
    for (text = text.drop_front(); !text.empty() && text.front() != '"';) {
      char c = text.front();
      text = text.drop_front();
      if (c == '\\' && text.consume_front("\\")) {
        result += '\\';
      } else if (c == '\\') {
        if (text.size() < 2 || !llvm::isHexDigit(text[0]) || !llvm::isHexDigit(text[1]))
          return false;
        result += char(llvm::hexDigitValue(text[0]) * 16 + llvm::hexDigitValue(text[1]));
        text = text.drop_front(2);
      } else {
        result += c;
      }
    }
    return text.consume_front("\"");
  }

  llvm::StringRef text;
};

/// What an expression's coefficients add up to at most, its symbols and functions taken for 1.
double magnitude(Expr e) {
  double sum = 0;
  for (const Term &term : termsOf(e))
    sum += std::abs(double(term.coefficient));
  return sum;
}

/// Recursive descent; every function returns null after an error. Of text that somebody has written, what would be
/// folded to something else than it says is an error: numbers that leave 64 bits, and a division by 0.
template <typename Tokens> class Grammar {
public:
  Grammar(mlir::MLIRContext *context, Tokens &tokens) : context(context), tokens(tokens) {}

  Expr expression() {
    if (++depth > maxDepth)
      return fail("expression is nested too deeply");
    bool isNegative = tokens.consume('-');
    isNegated = isNegative;
    Expr sum = term();
    if (sum && isNegative)
      sum = -sum;
    while (sum) {
      bool isPlus = tokens.consume('+');
      if (!isPlus && !tokens.consume('-'))
        break;
      Expr next = term();
      if (next && !isHoldable(magnitude(sum) + magnitude(next)))
        return fail("a number does not fit in 64 bits");
      sum = !next ? Expr() : isPlus ? sum + next : sum - next;
    }
    --depth;
    return sum;
  }

private:
  static constexpr unsigned maxDepth = 200;

  Expr fail(const llvm::Twine &message) {
    tokens.fail(message);
    return Expr();
  }

  static bool isHoldable(double sum) { return Tokens::isTrusted || sum < 9.2e18; }

  Expr term() {
    Expr result = factor();
    while (result && tokens.consume('*')) {
      Expr next = factor();
      if (next && !isHoldable(magnitude(result) * magnitude(next)))
        return fail("a number does not fit in 64 bits");
      result = next ? result * next : Expr();
    }
    return result;
  }

  Expr factor() {
    if (tokens.consume('(')) {
      isNegated = false;
      Expr inner = expression();
      if (inner && !tokens.consume(')'))
        return fail("expected ')' in expression");
      return inner;
    }
    uint64_t most = uint64_t(INT64_MAX) + std::exchange(isNegated, false);
    if (std::optional<uint64_t> value = tokens.integer())
      return Tokens::isTrusted || *value <= most ? Expr::constant(context, int64_t(*value))
                                                 : fail("integer does not fit in 64 bits");
    std::string name;
    bool isQuoted;
    if (tokens.hasFailed || !tokens.name(name, isQuoted))
      return fail("expected an integer, a symbol or a function in expression");
    if (isQuoted || !isFunctionName(name))
      return Expr::symbol(context, name);
    return call(name);
  }

  Expr call(llvm::StringRef name) {
    llvm::SmallVector<Expr, 4> args;
    if (!tokens.consume('('))
      return fail("expected '(' after '" + name + "'");
    do {
      Expr arg = expression();
      if (!arg)
        return Expr();
      args.push_back(arg);
    } while (tokens.consume(','));
    if (!tokens.consume(')'))
      return fail("expected ')' in expression");
    return apply(name, args);
  }

  Expr apply(llvm::StringRef name, llvm::ArrayRef<Expr> args) {
    if (name == "min")
      return llvm::accumulate(args.drop_front(), args[0], Expr::min);
    if (name == "max")
      return llvm::accumulate(args.drop_front(), args[0], Expr::max);
    size_t arity = name == "select" ? 3 : 2;
    if (args.size() != arity)
      return fail("'" + name + "' takes " + llvm::Twine(arity) + " arguments");
    bool divides = name == "floordiv" || name == "ceildiv" || name == "mod";
    if (!Tokens::isTrusted && divides && args[1].isConstant() && args[1].getValue() == 0)
      return fail("division by 0");
    if (name == "floordiv")
      return args[0].floorDiv(args[1]);
    if (name == "ceildiv")
      return args[0].ceilDiv(args[1]);
    if (name == "mod")
      return args[0].mod(args[1]);
    if (name == "lt")
      return Expr::lt(args[0], args[1]);
    if (name == "eq")
      return Expr::eq(args[0], args[1]);
    return Expr::select(args[0], args[1], args[2]);
  }

  mlir::MLIRContext *context;
  Tokens &tokens;
  unsigned depth = 0;
  bool isNegated = false; // a minus stands right in front: the least number has no positive counterpart
};
} // namespace

Expr Expr::parse(mlir::AsmParser &parser) {
  MlirTokens tokens(parser);
  return Grammar<MlirTokens>(parser.getContext(), tokens).expression();
}

Expr Expr::parse(mlir::MLIRContext *context, llvm::StringRef text) {
  TextTokens tokens(text);
  Expr result = Grammar<TextTokens>(context, tokens).expression();
  return result && tokens.atEnd() ? result : Expr();
}

mlir::Attribute ExprAttr::parse(mlir::AsmParser &parser, mlir::Type) {
  if (parser.parseLess())
    return {};
  Expr result = Expr::parse(parser);
  if (!result || parser.parseGreater())
    return {};
  return result;
}
