#include "compiler/StoredWeights.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <numeric>

using namespace ptc;

namespace {
struct Gather {
  std::vector<int64_t> extents, strides;
  int64_t offset = 0, panel = -1, lane = -1, limit = 0;
};
} // namespace

/// The stored form of 0, 1, 2, ... (source elements).
static llvm::Expected<std::vector<int>> store(const Gather &gather, int64_t sourceElements, size_t storedElements) {
  mlir::MLIRContext context;
  context.loadDialect<loop::LoopDialect>();
  auto recipe = loop::RecipeAttr::get(&context, gather.extents, gather.strides, gather.offset, gather.panel,
                                      gather.lane, gather.limit);
  std::vector<int> source(sourceElements), target(storedElements, 0);
  std::iota(source.begin(), source.end(), 1);
  if (llvm::Error error =
          applyRecipe(recipe, sizeof(int), {reinterpret_cast<const char *>(source.data()), source.size() * sizeof(int)},
                      {reinterpret_cast<char *>(target.data()), target.size() * sizeof(int)}))
    return std::move(error);
  return target;
}

static std::vector<int> stored(const Gather &gather, int64_t sourceElements, size_t storedElements) {
  llvm::Expected<std::vector<int>> result = store(gather, sourceElements, storedElements);
  REQUIRE(bool(result));
  return *result;
}

TEST_CASE("a recipe transposes by its strides", "[weights]") {
  CHECK(stored({.extents = {3, 2}, .strides = {1, 3}}, 6, 6) == std::vector<int>{1, 4, 2, 5, 3, 6});
}

TEST_CASE("lanes past the panels' limit stay zero", "[weights]") {
  // 2 rows of 3 columns in panels of 2 columns: [panel][row][lane].
  Gather gather{.extents = {2, 2, 2}, .strides = {2, 3, 1}, .panel = 0, .lane = 2, .limit = 3};
  CHECK(stored(gather, 6, 8) == std::vector<int>{1, 2, 4, 5, 3, 0, 6, 0});
}

TEST_CASE("panels of a transposed source", "[weights]") {
  // Source [column][row] of 3 columns and 2 rows.
  Gather gather{.extents = {2, 2, 2}, .strides = {4, 1, 2}, .panel = 0, .lane = 2, .limit = 3};
  CHECK(stored(gather, 6, 8) == std::vector<int>{1, 3, 2, 4, 5, 0, 6, 0});
}

TEST_CASE("an offset selects a part", "[weights]") {
  CHECK(stored({.extents = {2}, .strides = {1}, .offset = 4}, 6, 2) == std::vector<int>{5, 6});
}

TEST_CASE("a recipe that would read outside its source is refused", "[weights]") {
  llvm::Expected<std::vector<int>> result = store({.extents = {4}, .strides = {2}}, 6, 4);
  REQUIRE(!result);
  CHECK(llvm::toString(result.takeError()) == "a weight's recipe reads outside its source");
  result = store({.extents = {2}, .strides = {-1}}, 6, 2);
  REQUIRE(!result);
  llvm::consumeError(result.takeError());
}

TEST_CASE("threads that ask at once get the bytes of one mapped file", "[weights]") {
  llvm::SmallString<128> path;
  int descriptor;
  REQUIRE(!llvm::sys::fs::createTemporaryFile("weights", "bin", descriptor, path));
  llvm::FileRemover remover(path);
  std::string content(1 << 20, 'w');
  llvm::raw_fd_ostream(descriptor, true) << content;

  mlir::MLIRContext context;
  context.loadDialect<prim::PrimDialect>();
  auto ref = prim::WeightRefAttr::get(&context, "w", "", 16, content.size() - 16);
  constexpr int threads = 8, rounds = 200;
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency(threads));
  std::atomic<int> wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    WeightFiles files(path);
    std::array<std::atomic<const char *>, threads> found{};
    for (std::atomic<const char *> &data : found)
      pool.async([&] {
        llvm::Expected<llvm::ArrayRef<char>> bytes = files.getBytes(ref);
        bool isRight =
            bytes && llvm::StringRef(bytes->data(), bytes->size()) == llvm::StringRef(content).drop_front(16);
        wrong += !isRight;
        if (bytes)
          data = bytes->data();
        else
          llvm::consumeError(bytes.takeError());
      });
    pool.wait();
    for (const char *data : found)
      wrong += data != found[0];
  }
  CHECK(wrong == 0);
}
