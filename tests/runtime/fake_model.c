#include "fake_model.h"

static const float bias[1024] = {0.5f};

/* buffers: x, y, the bias. One iteration is a row; scratch holds one row. */
static int32_t scale(void *const *buffers, const int64_t *symbols, int64_t begin, int64_t end, void *scratch) {
  const float *x = buffers[0];
  float *y = buffers[1], *row = scratch;
  const float *b = buffers[2];
  for (int64_t i = begin; i < end; i++) {
    for (int j = 0; j < FAKE_COLUMNS; j++)
      row[j] = 2 * x[i * FAKE_COLUMNS + j];
    for (int j = 0; j < FAKE_COLUMNS; j++)
      y[i * FAKE_COLUMNS + j] = row[j] + b[0];
  }
  return 0;
}

static int32_t scale_v4(void *const *buffers, const int64_t *symbols, int64_t begin, int64_t end, void *scratch) {
  return scale(buffers, symbols, begin, end, scratch);
}

/* buffers: indices, y. Index i must lie in [0, 10). */
static int32_t gather(void *const *buffers, const int64_t *symbols, int64_t begin, int64_t end, void *scratch) {
  const int64_t *indices = buffers[0];
  float *y = buffers[1];
  for (int64_t i = begin; i < end; i++) {
    if (indices[i] < 0 || indices[i] >= 10)
      return PTC_RT_FAULT_INDEX;
    y[i] = (float)indices[i] * 10;
  }
  return 0;
}

static ptc_rt_kernel *const baseline[] = {scale, gather};
static ptc_rt_kernel *const wide[] = {scale_v4, gather};
static ptc_rt_kernel *const impossible[] = {scale, gather};
static const char *const kernel_names[] = {"scale_1", "gather_2"};
static const ptc_rt_level levels[] = {
    {"x86-64", 0, baseline}, {"x86-64-v2", PTC_RT_X86_V2, wide}, {"impossible", 1ull << 63, impossible}};
static const char *const level_names[] = {"x86-64", "x86-64-v2", "impossible"};

static const ptc_symbol batch[] = {{"batch", 1, 1000, 1, 8}};
static const ptc_dim dims_xy[] = {{-1, 0, 0, "batch"}, {FAKE_COLUMNS, -1, 0, "32"}};
static const ptc_dim dims_twice[] = {{-1, -1, 0, "2 * batch"}};
static const ptc_dim dims_one[] = {{1, -1, 0, "1"}};
static const ptc_value scale_inputs[] = {{"x:0", "x_0", {PTC_FLOAT, 32, 1}, 2, dims_xy, -1, 0},
                                         {"runs", "runs", {PTC_INT, 64, 1}, 1, dims_one, 1, 0},
                                         {"twice", "twice", {PTC_UINT, 8, 1}, 1, dims_twice, -1, 0}};
static const ptc_value scale_outputs[] = {{"y", "y", {PTC_FLOAT, 32, 1}, 2, dims_xy, -1, 0},
                                          {"runs_out", "runs_out", {PTC_INT, 64, 1}, 1, dims_one, 1, 0}};
static const ptc_dim dims_batch[] = {{-1, 0, 0, "batch"}};
static const ptc_value gather_inputs[] = {{"indices", "indices", {PTC_INT, 64, 1}, 1, dims_batch, -1, 0}};
static const ptc_value gather_outputs[] = {{"values", "values", {PTC_FLOAT, 32, 1}, 1, dims_batch, -1, 0}};
static const char *const guard_texts[] = {"batch <= 64"};
static const ptc_function functions[] = {{"scale", 3, 2, scale_inputs, scale_outputs, 1, 1, batch, guard_texts},
                                         {"gather", 1, 1, gather_inputs, gather_outputs, 1, 0, batch, 0}};

/* The result goes through the arena first, so that a missing arena would show. */
static int32_t scale_program(ptc_rt_call *call, int64_t *symbols, void *const *arguments, char *arena) {
  void *buffers[] = {arguments[0], arena, (void *)call->weights};
  int32_t fault = ptc_rt_launch(call, 0, buffers, symbols, symbols[0], 4, FAKE_COLUMNS * sizeof(float));
  if (fault)
    return fault;
  int64_t shape[] = {FAKE_COLUMNS, symbols[0], 1, FAKE_COLUMNS}; /* transposed */
  ptc_rt_tap(call, 0, arena, shape);
  ptc_rt_copy(arguments[3], arena, symbols[0] * FAKE_COLUMNS * (int64_t)sizeof(float));
  ++*(int64_t *)arguments[4];
  return 0;
}

/* Both halves side by side. */
static int32_t gather_program(ptc_rt_call *call, int64_t *symbols, void *const *arguments, char *arena) {
  int64_t half = symbols[0] / 2;
  void *rest[] = {(int64_t *)arguments[0] + half, (float *)arguments[1] + half};
  const ptc_rt_part parts[] = {{arguments, symbols, half, 1, 0, 0}, {rest, symbols, symbols[0] - half, 1, 0, 1}};
  return ptc_rt_launch_joined(call, parts, 2);
}

static int64_t scale_arena(const int64_t *symbols) { return symbols[0] * FAKE_COLUMNS * (int64_t)sizeof(float); }
static int64_t scale_scratch(const int64_t *symbols) { return FAKE_COLUMNS * sizeof(float); }
static int64_t no_bytes(const int64_t *symbols) { return 0; }
static int32_t at_most_64(const int64_t *symbols) { return symbols[0] <= 64 ? -1 : 0; }

static void scale_input_shapes(const int64_t *symbols, int64_t *const *shapes) {
  shapes[0][0] = symbols[0];
  shapes[0][1] = FAKE_COLUMNS;
  shapes[1][0] = 1;
  shapes[2][0] = 2 * symbols[0];
}
static void scale_shapes(const int64_t *symbols, int64_t *const *shapes) {
  shapes[0][0] = symbols[0];
  shapes[0][1] = FAKE_COLUMNS;
  shapes[1][0] = 1;
}
static void gather_shapes(const int64_t *symbols, int64_t *const *shapes) { shapes[0][0] = symbols[0]; }

static const uint32_t guard_symbols[] = {0};
static const ptc_rt_guard guards[] = {{"batch <= 64", 0, 1, 0, guard_symbols}};
static const ptc_rt_launch_site scale_sites[] = {{0, 0, "layer1/mul, layer1/add", 0}};
static const ptc_rt_launch_site gather_sites[] = {{1, 0, "lookup", 0}, {1, 0, "lookup_rest", 0}};
static const ptc_rt_tap_site taps[] = {{"layer1/add", "Add", "sum", {PTC_FLOAT, 32, 1}, 2, 3, 0}};
static const ptc_rt_variant guarded_variant[] = {
    {"small", scale_program, scale_arena, scale_scratch, at_most_64, guards, scale_sites, 1, 1, taps, 1, 0, 0, 0, 0}};
static const ptc_rt_variant open_variants[] = {
    {"small", scale_program, scale_arena, scale_scratch, at_most_64, guards, scale_sites, 1, 1, taps, 1, 0, 0, 0, 0},
    {"general", scale_program, scale_arena, scale_scratch, 0, 0, scale_sites, 0, 1, taps, 1, 0, 0, 0, 0}};
static const ptc_rt_variant gather_variant[] = {
    {"general", gather_program, no_bytes, 0, 0, 0, gather_sites, 0, 2, 0, 0, 0, 0, 0, 0}};

static const ptc_rt_function guarded_functions[] = {
    {&functions[0], guarded_variant, 1, 0, scale_input_shapes, scale_shapes},
    {&functions[1], gather_variant, 1, 0, 0, gather_shapes}};
static const ptc_rt_function open_functions[] = {{&functions[0], open_variants, 2, 0, scale_input_shapes, scale_shapes},
                                                 {&functions[1], gather_variant, 1, 0, 0, gather_shapes}};

static const int64_t bias_shape[] = {1};
static const ptc_weight public_weights[] = {{"bias", {PTC_FLOAT, 32, 1}, 1, bias_shape, 4}};
static const ptc_rt_stored_form bias_forms[] = {{0, 4, 0}};
static const ptc_rt_weight weights[] = {{bias_forms, 1, 0}};

static const ptc_model_table table = {.struct_size = sizeof(ptc_model_table),
                                      .abi_version = PTC_ABI_VERSION,
                                      .name = "fake",
                                      .function_count = 2,
                                      .level_count = 3,
                                      .functions = functions,
                                      .levels = level_names,
                                      .weight_count = 1,
                                      .weights = public_weights};

#define DESCRIPTOR(kind, table_of_functions)                                                                           \
  {                                                                                                                    \
    .version = PTC_RT_VERSION, .function_count = 2, .level_count = 3, .kernel_count = 2, .table = &table,              \
    .functions = table_of_functions, .levels = levels, .kernel_names = kernel_names,                                   \
    .threading = &ptc_rt_threading_##kind, .weights = {                                                                \
      PTC_RT_WEIGHTS_EMBEDDED,                                                                                         \
      0,                                                                                                               \
      sizeof(bias),                                                                                                    \
      (const char *)bias,                                                                                              \
      0,                                                                                                               \
      0,                                                                                                               \
      sizeof(bias),                                                                                                    \
      0,                                                                                                               \
      weights                                                                                                          \
    }                                                                                                                  \
  }

static const ptc_rt_descriptor descriptors[] = {
    DESCRIPTOR(none, open_functions),    DESCRIPTOR(none, guarded_functions), DESCRIPTOR(pool, open_functions),
    DESCRIPTOR(pool, guarded_functions), DESCRIPTOR(openmp, open_functions),  DESCRIPTOR(openmp, guarded_functions)};

const ptc_rt_descriptor *fake_descriptor(const ptc_rt_threading *threading, bool guarded) {
  const ptc_rt_descriptor *descriptor = descriptors;
  while (descriptor->threading != threading)
    descriptor++;
  return descriptor + guarded;
}
