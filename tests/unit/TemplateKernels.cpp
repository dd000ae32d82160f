#include "tests/unit/TemplateKernels.h"

#include <random>
#include <utility>

using namespace ptc::test;

std::vector<float> ptc::test::randomFloats(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> result(static_cast<size_t>(count));
  for (float &x : result)
    x = values(random);
  return result;
}

static std::string str(int64_t value) { return std::to_string(value); }

static std::string extent(const std::string &symbol, int64_t value) { return symbol.empty() ? str(value) : symbol; }

/// a*b*c, leaving out factors of 1.
static std::string times(std::vector<std::string> factors) {
  std::string product;
  for (const std::string &factor : factors)
    if (factor != "1")
      product += (product.empty() ? "" : "*") + factor;
  return product.empty() ? "1" : product;
}

static std::string buffer(const std::string &elements, const std::string &type) {
  return "!loop.buffer<[" + elements + "] x " + type + ">";
}

static std::string load(const std::string &result, const std::string &from, const std::string &index,
                        const std::string &type) {
  return "  " + result + " = loop.load " + from + " [" + index + "] : " + type + "\n";
}

namespace {
/// Arithmetic of an epilogue, in text.
struct Body {
  std::string text, type, value;
  int count = 0;
  std::string fresh() { return "%t" + str(count++); }
  void binary(const std::string &op, const std::string &a, const std::string &b) {
    std::string result = fresh();
    text += "  " + result + " = arith." + op + " " + a + ", " + b + " : " + type + "\n";
    value = result;
  }
  std::string constant(const std::string &literal) {
    std::string result = fresh();
    text += "  " + result + " = arith.constant " + literal + " : " + type + "\n";
    return result;
  }
  void activate(Activation activation) {
    if (activation == Activation::None)
      return;
    std::string x = value;
    if (activation == Activation::Relu) {
      std::string zero = constant("0.0"), isNegative = fresh(), result = fresh();
      text += "  " + isNegative + " = arith.cmpf olt, " + x + ", " + zero + " : " + type + "\n";
      text += "  " + result + " = arith.select " + isNegative + ", " + zero + ", " + x + " : " + type + "\n";
      value = result;
      return;
    }
    std::string scaled, erf = fresh();
    binary("mulf", x, constant("0.70710678118654752"));
    text += "  " + erf + " = math.erf " + value + " : " + type + "\n";
    binary("addf", erf, constant("1.0"));
    scaled = value;
    binary("mulf", x, constant("0.5"));
    binary("mulf", value, scaled);
  }
};
} // namespace

static std::string kernel(const std::string &arguments, const std::vector<std::string> &symbols,
                          const std::string &written, const std::string &body) {
  std::string names;
  for (const std::string &symbol : symbols)
    names += (names.empty() ? "\"" : ", \"") + symbol + "\"";
  return "loop.kernel @k(" + arguments + ") attributes {symbols = [" + names +
         "], parallel = 0 : i64, arguments_written = array<i64: " + written + ">} {\n" + body + "}\n";
}

static std::vector<std::string> present(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string &name) { return name.empty(); });
  return names;
}

std::string Matmul::text() const {
  std::string M = extent(symbolicM, m), N = extent(symbolicN, n), K = extent(symbolicK, k), B = str(batch);
  std::string panelCount = str((n + 15) / 16);
  std::string typeA = buffer(sharesA ? times({M, K}) : times({B, M, K}), type);
  std::string typeB = buffer(isPacked ? times({B, panelCount, K, "16"}) : times({B, K, N}), type);
  std::string typeC = buffer(times({B, M, N}), type), typeBias = buffer(N, type);
  // Dims: b, m, n, k.
  std::string aIndex = transposeA ? "d3*" + M + " + d1" : "d1*" + K + " + d3";
  if (!sharesA)
    aIndex = "d0*" + times({M, K}) + " + " + aIndex;
  std::string bIndex =
      transposeB ? "d0*" + times({N, K}) + " + d2*" + K + " + d3" : "d0*" + times({K, N}) + " + d3*" + N + " + d2";
  std::string cIndex =
      transposeC ? "d0*" + times({M, N}) + " + d2*" + M + " + d1" : "d0*" + times({M, N}) + " + d1*" + N + " + d2";
  std::string lhs;
  if (isMaskedLhs)
    lhs = "  %z = arith.constant 0.0 : " + type + "\n  %av = loop.masked [0 - mod(d1 + d3, 2)] else %z {\n" +
          load("%al", "%a", aIndex, typeA) + "  loop.yield %al : " + type + "\n  } : " + type + "\n";
  else
    lhs = load("%av", "%a", aIndex, typeA);
  lhs += "  loop.yield %av : " + type + "\n";
  std::string rhs = isPacked ? "  %bv = loop.panels %b " + std::string(isStrassen ? "{strassen} " : "") + ": " + typeB +
                                   " -> " + type + "\n"
                             : load("%bv", "%b", bIndex, typeB);
  rhs += "  loop.yield %bv : " + type + "\n";
  Body epilogue{.type = type, .value = "%acc"};
  if (hasBias) {
    epilogue.text += load("%bias_v", "%bias", "d2", typeBias);
    epilogue.binary("addf", epilogue.value, "%bias_v");
  }
  if (hasResidual) {
    epilogue.text += load("%res_v", "%res", cIndex, typeC);
    epilogue.binary("addf", epilogue.value, "%res_v");
  }
  epilogue.activate(activation);
  epilogue.text += "  loop.store " + epilogue.value + ", %c [" + cIndex + "] : " + typeC + "\n";
  std::string body = "loop.contraction [" + B + ", " + M + ", " + N + ", " + K + "] batch 1 m 1 n 1 k 1 lhs {\n" + lhs +
                     "} rhs {\n" + rhs + "} epilogue {\n^bb0(%acc: " + type + "):\n" + epilogue.text + "}\n";
  return kernel("%a: " + typeA + ", %b: " + typeB + ", %bias: " + typeBias + ", %res: " + typeC + ", %c: " + typeC,
                present({symbolicM, symbolicN, symbolicK}), "4", body);
}

std::vector<int64_t> Matmul::symbols() const {
  std::vector<int64_t> values;
  for (auto [name, value] : {std::pair(&symbolicM, m), std::pair(&symbolicN, n), std::pair(&symbolicK, k)})
    if (!name->empty())
      values.push_back(value);
  return values;
}

//===----------------------------------------------------------------------===//

int64_t Convolution::inputIndex(int64_t image, int64_t y, int64_t x, int64_t channel) const {
  int64_t channels = groups * in;
  if (isChannelsFirst || isInputChannelsFirst)
    return ((image * channels + channel) * height + y) * width + x;
  return ((image * height + y) * width + x) * channels + channel;
}

int64_t Convolution::outputIndex(int64_t image, int64_t y, int64_t x, int64_t channel) const {
  int64_t channels = groups * out;
  if (isChannelsFirst)
    return ((image * channels + channel) * outHeight() + y) * outWidth() + x;
  return ((image * outHeight() + y) * outWidth() + x) * channels + channel;
}

std::string Convolution::text() const {
  int64_t oh = outHeight(), ow = outWidth(), panels = (out + 15) / 16;
  std::string batch = extent(isFreeBatch ? "b" : "", images);
  std::string typeX = buffer(times({batch, str(height * width * groups * in)}), "f32");
  bool isSquare = kernelHeight == 3 && kernelWidth == 3;
  int64_t size = (winograd - 1) * stride + kernelWidth, positions = kernelHeight * kernelWidth;
  if (winograd)
    positions = size * (isSquare ? size : kernelHeight);
  std::string tile =
      str(winograd) + (isSquare ? ", 3" : "") + ", " + str(kernelWidth) + (stride > 1 ? ", " + str(stride) : "");
  std::string typeW = buffer(str(groups * panels * positions * in * 16), "f32");
  std::string typeBias = buffer(str(groups * out), "f32");
  std::string typeY = buffer(times({batch, str(oh * ow * groups * out)}), "f32");
  // Dims: group, image, oh, ow, oc, kh, kw, ic.
  std::string y = "(d2*" + str(stride) + " + d5*" + str(dilation) + " - " + str(pad) + ")";
  std::string x = "(d3*" + str(stride) + " + d6*" + str(dilation) + " - " + str(padLeft()) + ")";
  std::string channel = "(d0*" + str(in) + " + d7)", result = "(d0*" + str(out) + " + d4)";
  std::string xIndex, yIndex;
  int64_t inChannels = groups * in, outChannels = groups * out;
  if (isChannelsFirst || isInputChannelsFirst)
    xIndex =
        "((d1*" + str(inChannels) + " + " + channel + ")*" + str(height) + " + " + y + ")*" + str(width) + " + " + x;
  else
    xIndex =
        "((d1*" + str(height) + " + " + y + ")*" + str(width) + " + " + x + ")*" + str(inChannels) + " + " + channel;
  if (isChannelsFirst)
    yIndex = "((d1*" + str(outChannels) + " + " + result + ")*" + str(oh) + " + d2)*" + str(ow) + " + d3";
  else
    yIndex = "((d1*" + str(oh) + " + d2)*" + str(ow) + " + d3)*" + str(outChannels) + " + " + result;
  std::string lhs;
  if (pads())
    lhs = "  %z = arith.constant 0.0 : f32\n  %xv = loop.masked [" + y + ", " + str(height - 1) + " - " + y +
          (padsLines ? ", " + x + ", " + str(width - 1) + " - " + x : "") + "] else %z {\n" +
          load("%xl", "%x", xIndex, typeX) + "  loop.yield %xl : f32\n  } : f32\n";
  else
    lhs = load("%xv", "%x", xIndex, typeX);
  lhs += "  loop.yield %xv : f32\n";
  Body epilogue{.type = "f32", .value = "%acc"};
  epilogue.text += load("%bias_v", "%bias", result, typeBias);
  epilogue.binary("addf", epilogue.value, "%bias_v");
  if (hasResidual) {
    epilogue.text += load("%res_v", "%res", yIndex, typeY);
    epilogue.binary("addf", epilogue.value, "%res_v");
  }
  if (hasRelu)
    epilogue.activate(Activation::Relu);
  if (hasGelu)
    epilogue.activate(Activation::Gelu);
  epilogue.text += "  loop.store " + epilogue.value + ", %y [" + yIndex + "] : " + typeY + "\n";
  std::string domain = str(groups) + ", " + batch;
  for (int64_t e : {oh, ow, out, kernelHeight, kernelWidth, in})
    domain += ", " + str(e);
  std::string apart = dilation > 1 ? ", dilations = array<i64: " + str(dilation) + ", " + str(dilation) + ">" : "";
  std::string body = "loop.contraction [" + domain + "] batch 1 m 3 n 1 k 3 lhs {\n" + lhs + "} rhs {\n" +
                     "  %wv = loop.panels %w " +
                     (winograd ? "{winograd = array<i64: " + tile + ">" + apart + "} " : "") + ": " + typeW +
                     " -> f32\n  loop.yield %wv : f32\n} epilogue {\n" + "^bb0(%acc: f32):\n" + epilogue.text + "}\n";
  return kernel("%x: " + typeX + ", %w: " + typeW + ", %bias: " + typeBias + ", %res: " + typeY + ", %y: " + typeY,
                present({isFreeBatch ? "b" : ""}), "4", body);
}

//===----------------------------------------------------------------------===//

std::string Attention::text() const {
  std::string I = extent(symbolicI, i), J = extent(symbolicJ, j), H = str(heads), B = str(batch);
  std::string typeQ = buffer(times({B, I, H, str(d)}), "f32"), typeK = buffer(times({B, J, H, str(d)}), "f32");
  std::string typeV = buffer(times({B, J, H, str(e)}), "f32"), typeO = buffer(times({B, I, H, str(e)}), "f32");
  std::string typeMask = buffer(times({B, I, J}), "f32");
  // Dims: batch, head, i, j, d, e.
  auto region = [&](const char *from, const std::string &rows, const char *row, int64_t size, const char *column,
                    const std::string &type) {
    std::string index = "((d0*" + rows + " + " + row + ")*" + H + " + d1)*" + str(size) + " + " + column;
    return load("%v", from, index, type) + "  loop.yield %v : f32\n";
  };
  std::string score = "  %scale = arith.constant " + std::to_string(scale) + " : f32\n";
  if (cap)
    score += "  %cap = arith.constant " + std::to_string(cap) + " : f32\n  %inside = arith.mulf %dot, %scale : f32\n" +
             "  %tanh = math.tanh %inside : f32\n  %scaled = arith.mulf %tanh, %cap : f32\n";
  else
    score += "  %scaled = arith.mulf %dot, %scale : f32\n";
  if (hasMask)
    score += load("%m", "%mask", "(d0*" + I + " + d2)*" + J + " + d3", typeMask) +
             "  %masked = arith.addf %scaled, %m : f32\n  loop.yield %masked : f32\n";
  else
    score += "  loop.yield %scaled : f32\n";
  std::string oIndex = "((d0*" + I + " + d2)*" + H + " + d1)*" + str(e) + " + d5";
  std::string body = "loop.attention [" + B + ", " + H + ", " + I + ", " + J + ", " + str(d) + ", " + str(e) +
                     "] batch 2 " + (isCausal ? "causal " : "") + (zeroMaskedRows ? "zero_masked_rows " : "") +
                     "q {\n" + region("%q", I, "d2", d, "d4", typeQ) + "} k {\n" +
                     region("%k", J, "d3", d, "d4", typeK) + "} v {\n" + region("%v_", J, "d3", e, "d5", typeV) +
                     "} score {\n^bb0(%dot: f32):\n" + score + "} epilogue {\n^bb0(%r: f32):\n  loop.store %r, %o [" +
                     oIndex + "] : " + typeO + "\n}\n";
  return kernel("%q: " + typeQ + ", %k: " + typeK + ", %v_: " + typeV + ", %mask: " + typeMask + ", %o: " + typeO,
                present({symbolicI, symbolicJ}), "4", body);
}

std::vector<int64_t> Attention::symbols() const {
  std::vector<int64_t> values;
  if (!symbolicI.empty())
    values.push_back(i);
  if (!symbolicJ.empty())
    values.push_back(j);
  return values;
}

std::vector<float> ptc::test::packPanels(const float *source, int64_t k, int64_t n, int64_t kStride, int64_t nStride) {
  int64_t panels = (n + 15) / 16;
  std::vector<float> packed(size_t(panels * k * 16), 0.0f);
  for (int64_t column = 0; column < n; ++column)
    for (int64_t row = 0; row < k; ++row)
      packed[size_t(((column / 16) * k + row) * 16 + column % 16)] = source[row * kStride + column * nStride];
  return packed;
}
