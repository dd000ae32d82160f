//===- DevicePeaks.cpp - measured peaks of a CUDA device ------------------===//
//
// Kernels of a few lines, as text that the driver compiles:
//
//   read       each thread 16 bytes of a working set at a time, over and over: a set of half of L2, and one far larger
//   fma        chains of f32 multiply-adds
//   products   chains of tensor-core instructions: of warps everywhere, of warpgroups (twice the rate) where the device
//              has them. Operands are numbers of all kinds; zeros would let the chip run faster than work does.
//
// f32 products that are as exact as f32 are three of tf32 on tensor cores (codegen/gpu/README.md): a third of that rate
// is their peak.
//
//===----------------------------------------------------------------------===//
#include "compiler/CudaDriver.h"
#include "compiler/DiagnosticRendering.h"
#include "compiler/MachinePeaks.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <limits>

using namespace llvm;

namespace ptc {

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string header(StringRef version, StringRef target) {
  return formatv(".version {0}\n.target {1}\n.address_size 64\n", version, target);
}

/// Registers "%f0, %f1, ..."; `first` counts from 0.
static std::string registers(StringRef prefix, int first, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i)
    names.push_back((prefix + Twine(first + i)).str());
  return join(names, ", ");
}

/// A kernel of one parameter, how often `body` runs; what is in %f0 and after at its end is made use of.
static std::string chainKernel(StringRef name, StringRef before, StringRef body, int results) {
  std::string text = formatv(".visible .entry {0}(.param .u64 target, .param .u32 steps)\n{{\n"
                             ".reg .b32 %a<8>, %r<4>; .reg .f32 %f<{1}>, %x<2>; .reg .b64 %d<8>; .reg .pred %p<2>;\n"
                             "ld.param.u32 %r0, [steps];\nmov.u32 %r1, %tid.x;\n",
                             name, results);
  for (int i = 0; i < results; ++i)
    text += formatv("mov.f32 %f{0}, 0f00000000;\n", i);
  text += before;
  text += formatv("L{0}:\n{1}sub.u32 %r0, %r0, 1;\nsetp.ne.u32 %p0, %r0, 0;\n@%p0 bra L{0};\n", name, body);
  for (int i = 1; i < results; ++i)
    text += formatv("add.f32 %f0, %f0, %f{0};\n", i);
  // Hardly ever so, but who compiles this must make the sum.
  return text +
         "setp.eq.f32 %p1, %f0, 0f4B1E8A37;\nld.param.u64 %d0, [target];\n@%p1 st.global.f32 [%d0], %f0;\nret;\n}\n";
}

/// Operands that differ from thread to thread, between 0.5 and 2 as f16 and as f32.
static const char *const operands = "mad.lo.u32 %r2, %r1, 747796405, 277803737;\nand.b32 %r2, %r2, 0x03ff03ff;\n"
                                    "or.b32 %a0, %r2, 0x38003800;\nxor.b32 %a1, %a0, 0x01550155;\n"
                                    "xor.b32 %a2, %a0, 0x00aa02aa;\nxor.b32 %a3, %a0, 0x02330033;\n"
                                    "xor.b32 %a4, %a0, 0x01110222;\nxor.b32 %a5, %a0, 0x02220111;\n";

static std::string fmaKernel() {
  constexpr int chains = 32;
  std::string body;
  for (int i = 0; i < chains; ++i)
    body += formatv("fma.rn.f32 %f{0}, %x0, %x1, %f{0};\n", i);
  std::string before = std::string(operands) + "mov.b32 %x0, %a0;\nmov.b32 %x1, %a1;\n";
  return chainKernel("fma", before, body, chains);
}

static constexpr int warpChains = 8;

static std::string warpKernel(StringRef name, StringRef shape, StringRef type) {
  std::string body;
  for (int i = 0; i < warpChains; ++i) {
    std::string sums = registers("%f", i * 4, 4);
    body += formatv("mma.sync.aligned.{0}.row.col.f32.{1}.{1}.f32 {{{2}}, {{{3}}, {{{4}}, {{{2}};\n", shape, type, sums,
                    registers("%a", 0, 4), registers("%a", 4, 2));
  }
  return chainKernel(name, operands, body, warpChains * 4);
}

static constexpr int groupColumns = 256, groupProducts = 4;

/// Products of a warpgroup: lhs of 64 rows and rhs in shared memory, rows of 128 bytes in the order that swizzles
/// banks.
static std::string groupKernel(StringRef name, int depth, StringRef type) {
  constexpr int bytes = (64 + groupColumns) * 128;
  std::string before = formatv(".shared .align 1024 .b8 tile_{0}[{1}];\n", name, bytes);
  before += operands;
  before += formatv("mov.u32 %r3, tile_{0};\nmad.lo.u32 %a7, %r1, 4, %r3;\nmov.u32 %a6, {1};\n"
                    "F{0}:\nst.shared.b32 [%a7], %a0;\nadd.u32 %a7, %a7, 1024;\nsub.u32 %a6, %a6, 1;\n"
                    "setp.ne.u32 %p0, %a6, 0;\n@%p0 bra F{0};\n"
                    "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
                    "and.b32 %a7, %r3, 0x3ffff;\nshr.u32 %a7, %a7, 4;\ncvt.u64.u32 %d1, %a7;\n"
                    "or.b64 %d1, %d1, 0x4000004000010000;\nadd.s64 %d2, %d1, {2};\n",
                    name, bytes / 1024, 64 * 128 / 16);
  std::string body = "wgmma.fence.sync.aligned;\n";
  for (int i = 0; i < groupProducts; ++i)
    body +=
        formatv("add.s64 %d3, %d1, {0};\nadd.s64 %d4, %d2, {0};\n"
                "wgmma.mma_async.sync.aligned.m64n{1}k{2}.f32.{3}.{3} {{{4}}, %d3, %d4, 1, 1, 1{5};\n",
                2 * i, groupColumns, depth, type, registers("%f", 0, groupColumns / 2), type == "tf32" ? "" : ", 0, 0");
  body += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  return chainKernel(name, before, body, groupColumns / 2);
}

static const char *const readKernel = R"(.visible .entry read(.param .u64 memory, .param .u64 bytes, .param .u32 passes)
{
.reg .b32 %r<12>, %v<16>, %s; .reg .b64 %d<8>; .reg .pred %p<2>;
ld.param.u64 %d0, [memory];
ld.param.u64 %d1, [bytes];
ld.param.u32 %r0, [passes];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %r4, %r1, %r2, %r3;
mul.wide.u32 %d2, %r4, 16;
mov.u32 %r5, %nctaid.x;
mul.lo.u32 %r6, %r5, %r2;
mul.wide.u32 %d3, %r6, 16;
mov.u32 %s, 0;
PASS:
mov.u64 %d4, %d2;
STEP:
add.u64 %d5, %d0, %d4;
ld.volatile.global.v4.u32 {%v0, %v1, %v2, %v3}, [%d5];
add.u64 %d5, %d5, %d3;
ld.volatile.global.v4.u32 {%v4, %v5, %v6, %v7}, [%d5];
add.u64 %d5, %d5, %d3;
ld.volatile.global.v4.u32 {%v8, %v9, %v10, %v11}, [%d5];
add.u64 %d5, %d5, %d3;
ld.volatile.global.v4.u32 {%v12, %v13, %v14, %v15}, [%d5];
xor.b32 %v0, %v0, %v4;
xor.b32 %v8, %v8, %v12;
xor.b32 %v0, %v0, %v8;
xor.b32 %s, %s, %v0;
shl.b64 %d6, %d3, 2;
add.u64 %d4, %d4, %d6;
setp.lt.u64 %p0, %d4, %d1;
@%p0 bra STEP;
sub.u32 %r0, %r0, 1;
setp.ne.u32 %p0, %r0, 0;
@%p0 bra PASS;
setp.eq.u32 %p1, %s, 0x12345678;
@%p1 st.global.u32 [%d0], %s;
ret;
}
)";

std::string getDevicePeakText(bool hasWarpgroups) {
  if (hasWarpgroups)
    return header("8.0", "sm_90a") + groupKernel("f16", 16, "f16") + groupKernel("bf16", 16, "bf16") +
           groupKernel("tf32", 8, "tf32") + fmaKernel() + readKernel;
  return header("7.0", "sm_80") + warpKernel("f16", "m16n8k16", "f16") + warpKernel("bf16", "m16n8k16", "bf16") +
         warpKernel("tf32", "m16n8k8", "tf32") + fmaKernel() + readKernel;
}

//===----------------------------------------------------------------------===//
// Measurement
//===----------------------------------------------------------------------===//

namespace {

class DeviceProbe {
public:
  DeviceProbe(const CudaDriver &driver, int device) : driver(driver), device(device) {}
  ~DeviceProbe();
  /// The driver's error, or 0.
  int open();
  /// Operations a second of a kernel in which a warp does `ofWarp` in a step.
  double operations(const char *name, double ofWarp);
  double bandwidth(size_t bytes);
  int64_t attribute(CudaAttribute which) const {
    int value = 0;
    driver.attribute(&value, int(which), device);
    return value;
  }
  bool hasWarpgroups() const { return attribute(CudaAttribute::Major) == 9; }

private:
  static constexpr unsigned threads = 256, slices = 10;
  static constexpr float longEnough = 2; // milliseconds
  float launchOnce(void *function, unsigned blocks, void **parameters);
  /// Seconds of a pass of the fastest slice; `count` is the kernel's parameter that says how many there are.
  double measure(const char *name, unsigned blocks, void **parameters, uint32_t &count);

  const CudaDriver &driver;
  int device;
  void *context = nullptr, *module = nullptr, *begin = nullptr, *end = nullptr;
  uint64_t memory = 0;
  size_t most = size_t(1) << 30;
};

} // namespace

DeviceProbe::~DeviceProbe() {
  if (!context)
    return;
  if (memory)
    driver.free(memory);
  for (void *event : {begin, end})
    if (event)
      driver.eventDestroy(event);
  if (module)
    driver.unload(module);
  driver.pop(&context);
  driver.release(device);
}

int DeviceProbe::open() {
  if (int error = driver.retain(&context, device))
    return error;
  driver.push(context);
  std::string text = getDevicePeakText(hasWarpgroups());
  while (driver.allocate(&memory, most) && most > size_t(1) << 20)
    most /= 2;
  if (!memory)
    return driver.allocate(&memory, most);
  if (int error = driver.load(&module, text.c_str()))
    return error;
  if (int error = driver.eventCreate(&begin, 0))
    return error;
  if (int error = driver.eventCreate(&end, 0))
    return error;
  return driver.fill(memory, 1, most, nullptr);
}

float DeviceProbe::launchOnce(void *function, unsigned blocks, void **parameters) {
  float milliseconds = 0;
  driver.eventRecord(begin, nullptr);
  driver.launch(function, blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr);
  driver.eventRecord(end, nullptr);
  if (driver.wait(nullptr) || driver.eventElapsed(&milliseconds, begin, end))
    return 0;
  return milliseconds;
}

double DeviceProbe::measure(const char *name, unsigned blocks, void **parameters, uint32_t &count) {
  void *function = nullptr;
  if (driver.function(&function, module, name))
    return 0;
  count = 1;
  launchOnce(function, blocks, parameters); // brings the code
  float best = launchOnce(function, blocks, parameters);
  while (best > 0 && best < longEnough && count < 1u << 20) {
    count *= 2;
    best = launchOnce(function, blocks, parameters);
  }
  for (unsigned slice = 0; slice < slices && best > 0; ++slice)
    best = std::min(best, launchOnce(function, blocks, parameters));
  return double(best) * 1e-3 / count;
}

double DeviceProbe::operations(const char *name, double ofWarp) {
  uint32_t steps = 1;
  void *parameters[] = {&memory, &steps};
  // One block of warpgroups a multiprocessor, or as many of warps as keep it busy.
  unsigned together = hasWarpgroups() && StringRef(name) != "fma" ? 1 : 4;
  unsigned blocks = unsigned(attribute(CudaAttribute::Multiprocessors)) * together;
  double seconds = measure(name, blocks, parameters, steps);
  constexpr unsigned warpSize = 32;
  return seconds > 0 ? ofWarp * (threads / warpSize) * blocks / seconds : 0;
}

double DeviceProbe::bandwidth(size_t bytes) {
  unsigned blocks = unsigned(attribute(CudaAttribute::Multiprocessors)) * 8;
  size_t step = size_t(blocks) * threads * 16 * 4; // of all threads
  bytes = std::min(bytes, most) / step * step;
  if (bytes == 0)
    return 0;
  uint32_t passes = 1;
  uint64_t size = bytes;
  void *parameters[] = {&memory, &size, &passes};
  double seconds = measure("read", blocks, parameters, passes);
  return seconds > 0 ? double(bytes) / seconds : 0;
}

static MachinePeaks measureWith(DeviceProbe &probe) {
  MachinePeaks peaks;
  double warps = probe.hasWarpgroups() ? 64.0 / 4 * groupColumns * groupProducts : 16.0 * 8 * warpChains;
  auto product = [&](const char *name, double depth) { return probe.operations(name, 2 * warps * depth); };
  peaks.operations["f16"] = product("f16", 16);
  peaks.operations["bf16"] = product("bf16", 16);
  peaks.operations["f32"] = product("tf32", 8) / 3;
  peaks.operations["fma"] = probe.operations("fma", 32 * 32 * 2);
  auto l2 = size_t(probe.attribute(CudaAttribute::L2Bytes));
  peaks.bandwidths = {{double(l2), probe.bandwidth(l2 / 2)},
                      {std::numeric_limits<double>::infinity(), probe.bandwidth(size_t(1) << 30)}};
  return peaks;
}

Expected<MachinePeaks> measureDevicePeaks(int ordinal) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return exitError(exitTarget, "the loader finds no libcuda.so.1");
  auto closed = scope_exit([&] { dlclose(library); });
  CudaDriver driver(library);
  int device = 0;
  if (!driver.isWhole())
    return exitError(exitTarget, "libcuda.so.1 lacks functions of a CUDA driver");
  int error = driver.init(0);
  if (!error)
    error = driver.get(&device, ordinal);
  DeviceProbe probe(driver, device);
  if (!error)
    error = probe.open();
  if (error)
    return exitError(exitTarget, formatv("the CUDA driver fails with error {0}", error).str());
  MachinePeaks peaks = measureWith(probe);
  for (const auto &entry : peaks.operations)
    if (entry.getValue() <= 0)
      return exitError(exitTarget, "the device does not run what measures it");
  return peaks;
}

} // namespace ptc
