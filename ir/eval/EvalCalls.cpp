//===- EvalCalls.cpp - functions of the runtime, said again in C++ --------===//
//
// What PrimCalls.def specifies, slow and obvious, over lists of strings and of
// tensors: the oracle that libraries are compared with. Only the case of letters
// beyond ASCII, which is a table, is not repeated here.
//
//===----------------------------------------------------------------------===//
#include "ir/eval/EvalOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include <charconv>
#include <functional>
#include <set>

using namespace ptc;
using namespace ptc::eval;
using llvm::Expected;
using llvm::StringRef;

namespace {

/// A call: its operands, the values of its numbers, and its results, which are allocated.
struct Call {
  Operands x;
  llvm::ArrayRef<int64_t> numbers;
  std::vector<Tensor> &y;
};

//===----------------------------------------------------------------------===//
// Strings
//===----------------------------------------------------------------------===//

llvm::Error equal(const Call &c) {
  for (int64_t i = 0; i < c.numbers[0]; ++i)
    c.y[0].setInt(i, c.x[0]->getTexts()[i] == c.x[1]->getTexts()[i]);
  return llvm::Error::success();
}

llvm::Error concat(const Call &c) {
  for (int64_t i = 0; i < c.numbers[0]; ++i)
    c.y[0].getTexts()[i] = c.x[0]->getTexts()[i] + c.x[1]->getTexts()[i];
  return llvm::Error::success();
}

llvm::Error lookup(const Call &c) {
  for (int64_t i = 0; i < c.numbers[0]; ++i)
    c.y[0].setInt(i, llvm::find(c.x[1]->getTexts(), c.x[0]->getTexts()[i]) - c.x[1]->getTexts().begin());
  return llvm::Error::success();
}

llvm::Error rank(const Call &c) {
  std::set<std::string> texts(c.x[0]->getTexts().begin(), c.x[0]->getTexts().end());
  for (int64_t i = 0; i < c.numbers[0]; ++i)
    c.y[0].setInt(i, std::distance(texts.begin(), texts.find(c.x[0]->getTexts()[i])));
  return llvm::Error::success();
}

llvm::Error isAny(const Call &c) {
  for (int64_t i = 0; i < c.numbers[0]; ++i)
    c.y[0].setInt(i, llvm::is_contained(c.x[1]->getTexts(), c.x[0]->getTexts()[i]));
  return llvm::Error::success();
}

llvm::Error changeCase(const Call &c) {
  for (int64_t i = 0; i < c.numbers[0]; ++i) {
    StringRef text = c.x[0]->getTexts()[i];
    if (llvm::any_of(text, [](char byte) { return byte & 0x80; }))
      return llvm::make_error<Lack>("the case of letters beyond ASCII is not evaluated");
    c.y[0].getTexts()[i] = c.numbers[1] == 2 ? text.upper() : text.lower();
  }
  return llvm::Error::success();
}

std::vector<std::string> cut(StringRef text, StringRef delimiter, int64_t limit) {
  std::vector<std::string> pieces;
  while (true) {
    if (delimiter.empty())
      text = text.ltrim(" \t\n\v\f\r");
    if (delimiter.empty() && text.empty())
      return pieces;
    size_t end = delimiter.empty() ? text.find_first_of(" \t\n\v\f\r") : text.find(delimiter);
    if (int64_t(pieces.size()) == limit || end == StringRef::npos) {
      pieces.push_back(text.str());
      return pieces;
    }
    pieces.push_back(text.take_front(end).str());
    text = text.drop_front(end + delimiter.size());
  }
}

llvm::Error countPieces(const Call &c) {
  int64_t most = 0;
  for (int64_t i = 0; i < c.numbers[0]; ++i) {
    int64_t count = cut(c.x[0]->getTexts()[i], c.x[1]->getTexts()[0], c.numbers[1]).size();
    c.y[0].setInt(i, count);
    most = std::max(most, count);
  }
  c.y[1].setInt(0, most);
  return llvm::Error::success();
}

llvm::Error split(const Call &c) {
  int64_t width = c.numbers[2];
  for (int64_t i = 0; i < c.numbers[0]; ++i)
    for (auto [j, piece] : llvm::enumerate(cut(c.x[0]->getTexts()[i], c.x[1]->getTexts()[0], c.numbers[1])))
      if (int64_t(j) < width)
        c.y[0].getTexts()[i * width + j] = piece;
  return llvm::Error::success();
}

/// The program of runtime/src/regex.c: all places that a text of so many characters leads to.
bool matches(const Tensor &program, StringRef text) {
  auto word = [&](int64_t at) { return program.getInt(at); };
  std::vector<int64_t> characters; // -1: no UTF-8
  for (const auto *at = text.bytes_begin(), *end = text.bytes_end(); at != end;) {
    llvm::UTF32 code = 0;
    const llvm::UTF8 *next = at;
    bool isValid = llvm::convertUTF8Sequence(&next, end, &code, llvm::strictConversion) == llvm::conversionOK;
    characters.push_back(isValid ? int64_t(code) : -1);
    at = isValid ? next : at + 1;
  }
  auto isWord = [](int64_t c) { return c >= 0 && c < 128 && (llvm::isAlnum(char(c)) || c == '_'); };
  auto characterAt = [&](size_t i) { return i < characters.size() ? characters[i] : int64_t(-2); };
  std::set<int64_t> places = {0};
  for (size_t i = 0;; ++i) {
    int64_t before = i ? characters[i - 1] : -2, behind = characterAt(i);
    bool facts[] = {before == -2,
                    behind == -2,
                    before == -2 || before == '\n',
                    behind == -2 || behind == '\n',
                    isWord(before) != isWord(behind),
                    isWord(before) == isWord(behind)};
    std::vector<int64_t> open(places.begin(), places.end());
    auto add = [&](int64_t place) {
      if (places.insert(place).second)
        open.push_back(place);
    };
    bool isMatch = false;
    while (!open.empty()) {
      int64_t at = open.back();
      open.pop_back();
      isMatch |= word(at) == 0;
      if (word(at) == 1) {
        add(word(at + 1));
        add(word(at + 2));
      } else if (word(at) == 3 && facts[word(at + 2)]) {
        add(word(at + 1));
      }
    }
    if (i == characters.size())
      return isMatch;
    std::set<int64_t> next;
    for (int64_t at : places)
      for (int64_t range = 0; word(at) == 2 && range < word(at + 2); ++range)
        if (word(at + 3 + 2 * range) <= behind && behind <= word(at + 4 + 2 * range))
          next.insert(word(at + 1));
    places = std::move(next);
  }
}

llvm::Error match(const Call &c) {
  for (int64_t i = 0; i < c.numbers[0]; ++i)
    c.y[0].setInt(i, matches(*c.x[1], c.x[0]->getTexts()[i]));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

llvm::Error toNumber(const Call &c) {
  for (int64_t i = 0; i < c.numbers[0]; ++i) {
    StringRef text = StringRef(c.x[0]->getTexts()[i]).trim(" \t\n\v\f\r");
    auto refuse = [&] { return error("'" + text + "' is no number"); };
    int64_t kind = c.numbers[1];
    StringRef digits = text;
    digits.consume_front("+");
    if (kind == 1 || kind == 2) {
      int64_t integer;
      uint64_t whole;
      bool isWhole = kind == 1 ? !digits.getAsInteger(10, integer) : !digits.getAsInteger(10, whole);
      if (isWhole) {
        c.y[0].setBits(i, kind == 1 ? uint64_t(integer) : whole);
        continue;
      }
    }
    llvm::APFloat value(kind == 3 ? llvm::APFloat::IEEEsingle() : llvm::APFloat::IEEEdouble());
    std::string lower = text.lower();
    StringRef name = StringRef(lower);
    bool isNegative = name.consume_front("-");
    if (!isNegative)
      name.consume_front("+");
    if (name == "nan") {
      value = llvm::APFloat::getNaN(value.getSemantics());
    } else if (name == "inf" || name == "infinity") {
      value = llvm::APFloat::getInf(value.getSemantics(), isNegative);
    } else if (auto status = value.convertFromString(text, llvm::APFloat::rmNearestTiesToEven); !status) {
      llvm::consumeError(status.takeError());
      return refuse();
    }
    double number = kind == 3 ? double(value.convertToFloat()) : value.convertToDouble();
    if (kind == 0 || kind == 3)
      c.y[0].setFloat(i, number);
    else if (!(number > -9.3e18 && number < 9.3e18))
      return refuse();
    else
      c.y[0].setInt(i, int64_t(number));
  }
  return llvm::Error::success();
}

std::string formatFloat(double value, bool isSingle) {
  if (value != value)
    return "NaN";
  if (value - value != 0)
    return value < 0 ? "-INF" : "INF";
  char text[64];
  std::to_chars_result end = isSingle ? std::to_chars(text, std::end(text), float(value), std::chars_format::scientific)
                                      : std::to_chars(text, std::end(text), value, std::chars_format::scientific);
  auto [mantissa, power] = StringRef(text, end.ptr - text).split('e');
  int exponent = 0;
  power.consume_front("+");
  power.getAsInteger(10, exponent);
  if (exponent < -4 || exponent >= (isSingle ? 8 : 16))
    return StringRef(text, end.ptr - text).str();
  bool isNegative = mantissa.consume_front("-");
  std::string digits;
  for (char digit : mantissa)
    if (digit != '.')
      digits += digit;
  int point = exponent + 1; // digits before it
  if (point < 1)
    digits.insert(0, 1 - point, '0'), point = 1;
  if (int(digits.size()) < point)
    digits.append(point - digits.size(), '0');
  if (int(digits.size()) > point)
    digits.insert(point, ".");
  return (isNegative ? "-" : "") + digits;
}

llvm::Error fromNumber(const Call &c) {
  for (int64_t i = 0; i < c.numbers[0]; ++i) {
    int64_t kind = c.numbers[1];
    c.y[0].getTexts()[i] = kind <= 1   ? formatFloat(c.x[0]->getFloat(i), kind == 0)
                           : kind == 3 ? std::to_string(uint64_t(c.x[0]->getInt(i)))
                                       : std::to_string(c.x[0]->getInt(i));
  }
  return llvm::Error::success();
}

llvm::Error countGrams(const Call &c) {
  const Tensor &ids = *c.x[0], &trie = *c.x[1];
  int64_t columns = c.numbers[1], shortest = c.numbers[5];
  for (int64_t distance = 1; distance <= c.numbers[4] && shortest <= c.numbers[6]; ++distance) {
    for (int64_t row = 0; row < c.numbers[0]; ++row)
      for (int64_t start = 0; start < columns; ++start) {
        int64_t node = 0;
        for (int64_t at = start, size = 1; at < columns && size <= c.numbers[6]; at += distance, ++size) {
          int64_t first = trie.getInt(4 * node), last = first + trie.getInt(4 * node + 1);
          while (first < last && trie.getInt(4 * first + 2) != ids.getInt(row * columns + at))
            ++first;
          if (first == last)
            break;
          node = first;
          int64_t column = trie.getInt(4 * node + 3), to = row * c.numbers[3] + column;
          if (size >= shortest && column >= 0)
            c.y[0].setFloat(to, c.y[0].getFloat(to) + 1);
        }
      }
    shortest = std::max<int64_t>(shortest, 2);
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

Expected<int64_t> place(const Tensor &position, int64_t count, int64_t limit) {
  int64_t at = position.getInt(0);
  if (at < 0)
    at += count;
  if (at < 0 || at >= limit)
    return error("position " + llvm::Twine(position.getInt(0)) + " in a sequence of " + llvm::Twine(count));
  return at;
}

llvm::Error construct(const Call &c) {
  for (const Tensor *item : c.x)
    c.y[0].getItems().push_back(*item);
  return llvm::Error::success();
}

llvm::Error length(const Call &c) {
  c.y[0].setInt(0, c.x[0]->getItems().size());
  return llvm::Error::success();
}

llvm::Error insert(const Call &c) {
  std::vector<Tensor> items = c.x[0]->getItems();
  Expected<int64_t> at = place(*c.x[2], items.size(), items.size() + 1);
  if (!at)
    return at.takeError();
  items.insert(items.begin() + *at, *c.x[1]);
  c.y[0].getItems() = std::move(items);
  return llvm::Error::success();
}

llvm::Error erase(const Call &c) {
  std::vector<Tensor> items = c.x[0]->getItems();
  Expected<int64_t> at = place(*c.x[1], items.size(), items.size());
  if (!at)
    return at.takeError();
  items.erase(items.begin() + *at);
  c.y[0].getItems() = std::move(items);
  return llvm::Error::success();
}

Expected<const Tensor *> itemAt(const Call &c) {
  const std::vector<Tensor> &items = c.x[0]->getItems();
  Expected<int64_t> at = place(*c.x[1], items.size(), items.size());
  if (!at)
    return at.takeError();
  return &items[*at];
}

llvm::Error dimsAt(const Call &c) {
  Expected<const Tensor *> item = itemAt(c);
  if (!item)
    return item.takeError();
  if ((*item)->getRank() != c.numbers[0])
    return error("a tensor of a sequence has another rank");
  for (int64_t d = 0; d < c.numbers[0]; ++d)
    c.y[0].setInt(d, (*item)->getDim(d));
  return llvm::Error::success();
}

llvm::Error at(const Call &c) {
  Expected<const Tensor *> item = itemAt(c);
  if (!item)
    return item.takeError();
  if ((*item)->getShape() != c.y[0].getShape() || (*item)->getElementType() != c.y[0].getElementType())
    return error("a tensor of a sequence has not the type or the dims that the model says");
  c.y[0] = **item;
  return llvm::Error::success();
}

llvm::Error joinedDims(const Call &c) {
  const std::vector<Tensor> &items = c.x[0]->getItems();
  if (items.empty())
    return error("a sequence without tensors has none to join");
  llvm::SmallVector<int64_t> dims(items[0].getShape());
  if (c.numbers[2])
    dims.insert(dims.begin() + c.numbers[1], items.size());
  for (const Tensor &item : llvm::drop_begin(items)) {
    for (int64_t d = 0; d < item.getRank(); ++d)
      if (item.getRank() != items[0].getRank() ||
          (item.getDim(d) != items[0].getDim(d) && (c.numbers[2] || d != c.numbers[1])))
        return error("a tensor of a sequence does not fit the first one");
    if (!c.numbers[2])
      dims[c.numbers[1]] += item.getDim(c.numbers[1]);
  }
  for (auto [d, extent] : llvm::enumerate(dims))
    c.y[0].setInt(d, extent);
  return llvm::Error::success();
}

llvm::Error join(const Call &c) {
  int64_t axis = c.numbers[1], start = 0;
  llvm::SmallVector<int64_t, 4> strides = rowMajorStrides(c.y[0].getShape());
  for (const Tensor &item : c.x[0]->getItems()) {
    llvm::SmallVector<int64_t> shape(item.getShape());
    if (c.numbers[2])
      shape.insert(shape.begin() + axis, 1);
    forEachIndex(shape, [&](llvm::ArrayRef<int64_t> index, int64_t position) {
      c.y[0].copyElement(dot(index, strides) + start * strides[axis], item, position);
    });
    start += shape[axis];
  }
  return llvm::Error::success();
}

llvm::Error splitTensor(const Call &c) {
  const Tensor &x = *c.x[0];
  int64_t axis = c.numbers[0], each = c.numbers[3] < 0 ? c.x[1]->getInt(0) : c.numbers[2];
  if (c.numbers[3] <= 0 && each < 1)
    return error("pieces of " + llvm::Twine(each) + " elements");
  for (int64_t from = 0, piece = 0; c.numbers[3] > 0 ? piece < c.numbers[3] : from < x.getDim(axis); ++piece) {
    int64_t size = c.numbers[3] > 0 ? c.x[1]->getInt(piece) : std::min(each, x.getDim(axis) - from);
    if (size < 0 || size > x.getDim(axis) - from)
      return error("a piece of " + llvm::Twine(size) + " elements");
    llvm::SmallVector<int64_t> shape(x.getShape());
    shape[axis] = size;
    Expected<Tensor> item = Tensor::create(x.getElementType(), shape);
    if (!item)
      return item.takeError();
    llvm::SmallVector<int64_t, 4> strides = rowMajorStrides(x.getShape());
    forEachIndex(shape, [&](llvm::ArrayRef<int64_t> index, int64_t position) {
      item->copyElement(position, x, dot(index, strides) + from * strides[axis]);
    });
    if (c.numbers[1])
      shape.erase(shape.begin() + axis);
    c.y[0].getItems().push_back(std::move(*item).reshaped(shape));
    from += size;
  }
  return llvm::Error::success();
}

llvm::Error run(StringRef callee, const Call &call) {
  static constexpr std::pair<llvm::StringLiteral, llvm::Error (*)(const Call &)> functions[] = {
      {"ngram_count", countGrams},
      {"sequence_at", at},
      {"sequence_concat", join},
      {"sequence_concat_dims", joinedDims},
      {"sequence_construct", construct},
      {"sequence_dims", dimsAt},
      {"sequence_erase", erase},
      {"sequence_insert", insert},
      {"sequence_length", length},
      {"sequence_split", splitTensor},
      {"string_case", changeCase},
      {"string_concat", concat},
      {"string_count_pieces", countPieces},
      {"string_equal", equal},
      {"string_from_number", fromNumber},
      {"string_is_any", isAny},
      {"string_lookup", lookup},
      {"string_match", match},
      {"string_rank", rank},
      {"string_split", split},
      {"string_to_number", toNumber},
  };
  for (const auto &[name, function] : functions)
    if (name == callee)
      return function(call);
  return llvm::make_error<Lack>("'" + callee + "' is not evaluated");
}

} // namespace

Results eval::evalCall(prim::CallOp op, Operands x, Scope &scope) {
  if (prim::CustomAttr custom = op.getCustomAttr())
    return llvm::make_error<Lack>("the operator " + custom.getOp() +
                                  " is the user's own, which the interpreter does not have");
  Expected<Dims> numbers = evaluateExprs(prim::getExprs(op.getNumbers()), scope);
  if (!numbers)
    return numbers.takeError();
  std::vector<Tensor> results;
  for (mlir::Value value : op.getResults()) {
    Expected<Tensor> tensor = allocate(value, scope);
    if (!tensor)
      return tensor.takeError();
    results.push_back(std::move(*tensor));
  }
  if (llvm::Error failure = run(op.getCallee(), {x, *numbers, results}))
    return failure;
  return results;
}
