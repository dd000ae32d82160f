//===- RegexProgram.cpp - regular expressions, compiled -------------------===//
//
// A recursive descent over the pattern builds a tree; the tree becomes a program
// (runtime/src/regex.c lists its instructions), each part followed by what comes
// behind it, so that the program is written from its end: a part is emitted knowing
// where to go on. x{2,4} is the part repeated, x x (x (x)?)?, which is why counts
// are limited to 1000, as in RE2. Lazy and greedy repetition accept the same texts.
//
// Characters are code points; a class is a list of ranges, and "not" its
// complement. (?i) adds the other case of ASCII letters.
//
//===----------------------------------------------------------------------===//
#include "lowering/decomp/RegexProgram.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ConvertUTF.h"
#include <algorithm>
#include <memory>

using namespace llvm;

namespace {

constexpr int32_t lastCharacter = 0x10ffff;
constexpr int mostRepeats = 1000;
constexpr size_t mostWords = size_t(1) << 20;
constexpr unsigned mostDepth = 200;

using Ranges = SmallVector<std::pair<int32_t, int32_t>>;

enum Opcode : int32_t { Match = 0, Split = 1, Char = 2, Assert = 3 };
enum Place : int32_t { TextBegin = 0, TextEnd = 1, LineBegin = 2, LineEnd = 3, WordBoundary = 4, NoWordBoundary = 5 };

struct Node {
  enum class Kind { Empty, Char, Assert, Join, Either, Repeat } kind = Kind::Empty;
  Ranges ranges;
  Place place = TextBegin;
  std::vector<std::unique_ptr<Node>> parts;
  int least = 0, most = -1; // -1: any number
};
using NodePtr = std::unique_ptr<Node>;

NodePtr make(Node::Kind kind) {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  return node;
}

//===----------------------------------------------------------------------===//
// Classes of characters
//===----------------------------------------------------------------------===//

/// Ascending, none touching the next.
Ranges normalized(Ranges ranges) {
  llvm::sort(ranges);
  Ranges result;
  for (auto [low, high] : ranges)
    if (!result.empty() && low <= result.back().second + 1)
      result.back().second = std::max(result.back().second, high);
    else
      result.push_back({low, high});
  return result;
}

Ranges complement(const Ranges &ranges) {
  Ranges result;
  int32_t next = 0;
  for (auto [low, high] : normalized(ranges)) {
    if (low > next)
      result.push_back({next, low - 1});
    next = high + 1;
  }
  if (next <= lastCharacter)
    result.push_back({next, lastCharacter});
  return result;
}

/// ASCII letters in both cases.
Ranges withBothCases(const Ranges &ranges) {
  Ranges result = ranges;
  for (auto [low, high] : ranges)
    for (auto [first, distance] : {std::pair('a', -32), std::pair('A', 32)}) {
      int32_t from = std::max<int32_t>(low, first), to = std::min<int32_t>(high, first + 25);
      if (from <= to)
        result.push_back({from + distance, to + distance});
    }
  return result;
}

/// \d \s \w and the names of POSIX; empty if there is no such class.
Ranges namedClass(StringRef name) {
  Ranges digits = {{'0', '9'}}, upper = {{'A', 'Z'}}, lower = {{'a', 'z'}};
  auto sum = [](std::initializer_list<Ranges> parts) {
    Ranges all;
    for (const Ranges &part : parts)
      all.append(part);
    return all;
  };
  return StringSwitch<Ranges>(name)
      .Cases({"d", "digit"}, digits)
      .Case("s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}})
      .Case("space", {{'\t', '\r'}, {' ', ' '}})
      .Cases({"w", "word"}, sum({digits, upper, lower, {{'_', '_'}}}))
      .Case("alnum", sum({digits, upper, lower}))
      .Case("alpha", sum({upper, lower}))
      .Case("ascii", {{0, 127}})
      .Case("blank", {{'\t', '\t'}, {' ', ' '}})
      .Case("cntrl", {{0, 31}, {127, 127}})
      .Case("graph", {{'!', '~'}})
      .Case("lower", lower)
      .Case("print", {{' ', '~'}})
      .Case("punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}})
      .Case("upper", upper)
      .Case("xdigit", sum({digits, {{'A', 'F'}, {'a', 'f'}}}))
      .Default({});
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

class Reader {
public:
  explicit Reader(StringRef pattern) : rest(pattern) {}
  std::string problem;

  NodePtr readAll() {
    NodePtr node = readEither(0);
    if (problem.empty() && !rest.empty())
      fail("a ')' closes nothing");
    return node;
  }

private:
  struct Flags {
    bool ignoresCase = false, isMultiLine = false, dotTakesAll = false;
  };

  void fail(const Twine &reason) {
    if (problem.empty())
      problem = reason.str();
    rest = "";
  }

  NodePtr readEither(unsigned depth) {
    if (depth > mostDepth) {
      fail("its groups are nested too deeply");
      return make(Node::Kind::Empty);
    }
    Flags before = flags;
    NodePtr either = make(Node::Kind::Either);
    do
      either->parts.push_back(readJoin(depth));
    while (rest.consume_front("|"));
    flags = before; // what a group sets ends with it
    return either;
  }

  NodePtr readJoin(unsigned depth) {
    NodePtr join = make(Node::Kind::Join);
    while (!rest.empty() && rest.front() != '|' && rest.front() != ')') {
      if (rest.consume_front("\\Q")) {
        StringRef text = rest.take_front(rest.find("\\E"));
        rest = rest.drop_front(text.size());
        rest.consume_front("\\E");
        while (!text.empty())
          join->parts.push_back(character(takeCharacter(text)));
        continue;
      }
      if (NodePtr part = readPart(depth))
        join->parts.push_back(readRepeats(std::move(part)));
    }
    return join;
  }

  /// x* x+ x? x{2} x{2,} x{2,4}, each perhaps lazy.
  NodePtr readRepeats(NodePtr part) {
    while (!rest.empty()) {
      int least, most;
      if (rest.consume_front("*"))
        least = 0, most = -1;
      else if (rest.consume_front("+"))
        least = 1, most = -1;
      else if (rest.consume_front("?"))
        least = 0, most = 1;
      else if (!readCounts(least, most))
        break;
      rest.consume_front("?");
      NodePtr repeat = make(Node::Kind::Repeat);
      repeat->least = least;
      repeat->most = most;
      repeat->parts.push_back(std::move(part));
      part = std::move(repeat);
    }
    return part;
  }

  /// "{2,4}"; a brace that is no count is a character.
  bool readCounts(int &least, int &most) {
    StringRef text = rest;
    if (!text.consume_front("{") || text.consumeInteger(10, least))
      return false;
    most = least;
    if (text.consume_front(",") &&
        (text.empty() || text.front() == '}' ? (most = -1, false) : text.consumeInteger(10, most)))
      return false;
    if (!text.consume_front("}"))
      return false;
    rest = text;
    if (least < 0 || least > mostRepeats || most > mostRepeats || (most >= 0 && most < least))
      fail("a count is more than " + Twine(mostRepeats) + ", or less than the one before it");
    return true;
  }

  NodePtr readPart(unsigned depth) {
    if (rest.consume_front("("))
      return readGroup(depth);
    if (rest.consume_front("["))
      return inClass(readClass());
    if (rest.consume_front("."))
      return inClass(flags.dotTakesAll ? Ranges{{0, lastCharacter}} : complement({{'\n', '\n'}}));
    if (rest.consume_front("^"))
      return between(flags.isMultiLine ? LineBegin : TextBegin);
    if (rest.consume_front("$"))
      return between(flags.isMultiLine ? LineEnd : TextEnd);
    if (rest.front() == '*' || rest.front() == '+' || rest.front() == '?') {
      fail("'" + rest.take_front() + "' repeats nothing");
      return nullptr;
    }
    if (rest.consume_front("\\"))
      return readEscape();
    return character(takeCharacter(rest));
  }

  NodePtr readGroup(unsigned depth) {
    Flags outside = flags;
    if (rest.consume_front("?")) {
      if (rest.consume_front("P<") ||
          (rest.starts_with("<") && !rest.starts_with("<=") && !rest.starts_with("<!") && rest.consume_front("<"))) {
        size_t end = rest.find('>');
        if (end == StringRef::npos || end == 0)
          fail("a group's name does not end");
        rest = rest.drop_front(std::min(rest.size(), end + 1));
      } else if (!readFlags()) {
        return nullptr; // (?i): for what follows
      }
    }
    NodePtr group = readEither(depth + 1);
    if (!rest.consume_front(")"))
      fail("a '(' is not closed");
    flags = outside;
    return group;
  }

  /// "i-s:" of a group, which follows then, or "i)".
  bool readFlags() {
    bool value = true;
    while (!rest.empty()) {
      char c = rest.front();
      rest = rest.drop_front();
      if (c == ':')
        return true;
      if (c == ')')
        return false;
      if (c == '-')
        value = false;
      else if (c == 'i')
        flags.ignoresCase = value;
      else if (c == 'm')
        flags.isMultiLine = value;
      else if (c == 's')
        flags.dotTakesAll = value;
      else if (c != 'U')
        return fail("RE2 has no group (?" + Twine(c) + ", as of look-around"), false;
    }
    return fail("a '(' is not closed"), false;
  }

  NodePtr readEscape() {
    if (rest.empty()) {
      fail("it ends in a backslash");
      return nullptr;
    }
    switch (rest.front()) {
    case 'A':
    case 'z':
    case 'b':
    case 'B': {
      char c = rest.front();
      rest = rest.drop_front();
      return between(c == 'A' ? TextBegin : c == 'z' ? TextEnd : c == 'b' ? WordBoundary : NoWordBoundary);
    }
    }
    Ranges ranges;
    return readClassEscape(ranges) ? inClass(ranges) : nullptr;
  }

  /// What follows a backslash, in a class or outside: \d, \n, \x41, \x{1F600}, \101, \. and the like.
  bool readClassEscape(Ranges &ranges) {
    if (rest.empty())
      return fail("it ends in a backslash"), false;
    char c = rest.front();
    if (isAlpha(c)) {
      char lower = toLower(c);
      if (Ranges known = lower == 'd' || lower == 's' || lower == 'w' ? namedClass(StringRef(&lower, 1)) : Ranges();
          !known.empty()) {
        rest = rest.drop_front();
        ranges.append(c == lower ? known : complement(known));
        return true;
      }
    }
    int32_t code;
    if (!readCharacterEscape(code))
      return false;
    ranges.push_back({code, code});
    return true;
  }

  bool readCharacterEscape(int32_t &code) {
    char c = rest.front();
    static constexpr StringLiteral names("afnrtv"), values("\a\f\n\r\t\v");
    if (size_t at = names.find(c); at != StringRef::npos) {
      code = values[at];
      rest = rest.drop_front();
    } else if (rest.consume_front("x{")) {
      StringRef digits = rest.take_until([](char d) { return d == '}'; });
      rest = rest.drop_front(std::min(rest.size(), digits.size() + 1));
      if (digits.empty() || digits.getAsInteger(16, code) || code > lastCharacter)
        return fail("\\x{" + digits + "} is no character"), false;
    } else if (rest.consume_front("x")) {
      StringRef digits = rest.take_front(2);
      rest = rest.drop_front(digits.size());
      if (digits.size() < 2 || digits.getAsInteger(16, code))
        return fail("\\x" + digits + " is no character"), false;
    } else if (c >= '0' && c <= '7') {
      StringRef digits = rest.take_front(3).take_while([](char d) { return d >= '0' && d <= '7'; });
      if (c != '0' && digits.size() == 1)
        return fail("RE2 has no references to groups"), false;
      rest = rest.drop_front(digits.size());
      if (digits.getAsInteger(8, code))
        return fail("\\" + digits + " is no character"), false;
    } else if (isAlnum(c)) {
      return fail("\\" + Twine(c) + " is not supported"), false;
    } else {
      code = takeCharacter(rest);
    }
    return true;
  }

  /// Behind the '['.
  Ranges readClass() {
    bool isNegated = rest.consume_front("^"), isFirst = true;
    Ranges ranges;
    for (; isFirst || !rest.starts_with("]"); isFirst = false) {
      if (rest.empty()) {
        fail("a '[' is not closed");
        return {};
      }
      if (rest.starts_with("[:")) {
        readPosixClass(ranges);
        continue;
      }
      Ranges one = readClassMember();
      bool isRange =
          one.size() == 1 && one[0].first == one[0].second && rest.size() > 1 && rest[0] == '-' && rest[1] != ']';
      if (isRange) {
        rest = rest.drop_front();
        Ranges last = readClassMember();
        if (last.size() != 1 || last[0].first != last[0].second || last[0].first < one[0].first) {
          fail("a range in [...] has no end behind its beginning");
          return {};
        }
        one[0].second = last[0].first;
      }
      ranges.append(one);
    }
    rest.consume_front("]");
    if (flags.ignoresCase)
      ranges = withBothCases(ranges);
    return isNegated ? complement(ranges) : ranges;
  }

  Ranges readClassMember() {
    Ranges one;
    if (rest.consume_front("\\"))
      readClassEscape(one);
    else if (int32_t code = takeCharacter(rest); true)
      one.push_back({code, code});
    return one;
  }

  void readPosixClass(Ranges &ranges) {
    StringRef name = rest.drop_front(2).take_until([](char c) { return c == ':'; });
    rest = rest.drop_front(std::min(rest.size(), name.size() + 4));
    bool isNegated = name.consume_front("^");
    Ranges known = name.size() > 1 ? namedClass(name) : Ranges();
    if (known.empty())
      return fail("there is no class [:" + name + ":]");
    ranges.append(isNegated ? complement(known) : known);
  }

  NodePtr inClass(Ranges ranges) {
    NodePtr node = make(Node::Kind::Char);
    node->ranges = normalized(flags.ignoresCase ? withBothCases(ranges) : ranges);
    return node;
  }
  NodePtr character(int32_t code) { return inClass({{code, code}}); }
  static NodePtr between(Place place) {
    NodePtr node = make(Node::Kind::Assert);
    node->place = place;
    return node;
  }

  /// The first character of `text`, which must be UTF-8.
  int32_t takeCharacter(StringRef &text) {
    const auto *at = reinterpret_cast<const UTF8 *>(text.begin());
    UTF32 code = 0;
    if (convertUTF8Sequence(&at, reinterpret_cast<const UTF8 *>(text.end()), &code, strictConversion) != conversionOK) {
      fail("it is not UTF-8");
      text = "";
      return 0;
    }
    text = text.drop_front(reinterpret_cast<const char *>(at) - text.begin());
    return int32_t(code);
  }

  StringRef rest;
  Flags flags;
};

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Places are counted from the end while the program is written back to front; `finish` turns them around.
class Writer {
public:
  /// Emits what matches `node` and goes on at `next`; returns where it begins.
  int32_t emit(const Node &node, int32_t next) {
    if (isTooLong())
      return next;
    switch (node.kind) {
    case Node::Kind::Empty:
      return next;
    case Node::Kind::Char: {
      SmallVector<int32_t> words = {Char, next, int32_t(node.ranges.size())};
      for (auto [low, high] : node.ranges)
        words.append({low, high});
      return add(words);
    }
    case Node::Kind::Assert:
      return add({Assert, next, node.place});
    case Node::Kind::Join:
      for (const NodePtr &part : llvm::reverse(node.parts))
        next = emit(*part, next);
      return next;
    case Node::Kind::Either: {
      int32_t begin = emit(*node.parts.back(), next);
      for (const NodePtr &part : llvm::drop_begin(llvm::reverse(node.parts)))
        begin = add({Split, emit(*part, next), begin});
      return begin;
    }
    case Node::Kind::Repeat:
      return emitRepeat(node, next);
    }
    return next;
  }

  int32_t add(ArrayRef<int32_t> words) {
    instructions.push_back(SmallVector<int32_t>(words));
    length += words.size();
    return int32_t(instructions.size() - 1);
  }

  bool isTooLong() const { return length > mostWords; }

  /// The program, which begins at instruction `first`.
  std::vector<int32_t> finish(int32_t first) {
    std::vector<int32_t> places(instructions.size()), words;
    // The entry is the first word.
    std::vector<int32_t> order = {first};
    for (int32_t i = 0; i < int32_t(instructions.size()); ++i)
      if (i != first)
        order.push_back(i);
    int32_t at = 0;
    for (int32_t i : order) {
      places[i] = at;
      at += instructions[i].size();
    }
    for (int32_t i : order) {
      SmallVector<int32_t> &op = instructions[i];
      if (op[0] != Match)
        op[1] = places[op[1]];
      if (op[0] == Split)
        op[2] = places[op[2]];
      words.insert(words.end(), op.begin(), op.end());
    }
    return words;
  }

private:
  int32_t emitRepeat(const Node &node, int32_t next) {
    const Node &part = *node.parts.front();
    int32_t begin = next;
    if (node.most < 0) {
      begin = add({Split, next, next}); // its first way is the part, which comes back here
      int32_t inside = emit(part, begin);
      instructions[begin][1] = inside;
    } else {
      for (int i = node.least; i < node.most; ++i)
        begin = add({Split, emit(part, begin), next});
    }
    for (int i = 0; i < node.least; ++i)
      begin = emit(part, begin);
    return begin;
  }

  std::vector<SmallVector<int32_t>> instructions;
  size_t length = 0;
};

} // namespace

std::optional<std::vector<int32_t>> ptc::decomp::compileRegex(StringRef pattern, std::string &problem) {
  Reader reader(pattern);
  NodePtr node = reader.readAll();
  problem = reader.problem;
  if (!problem.empty())
    return std::nullopt;
  Writer writer;
  int32_t first = writer.emit(*node, writer.add({Match}));
  if (writer.isTooLong()) {
    problem = "its program is too long: counts of counts multiply";
    return std::nullopt;
  }
  return writer.finish(first);
}
