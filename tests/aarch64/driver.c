/* Runs a library of ptc's on tensors of a file: driver LIBRARY LEVEL THREADS INPUTS OUTPUTS. LEVEL "" is the best there
 * is.
 *
 * Both files are records, one a tensor: the length of the name as uint32, the name, code and bits of the element type
 * as bytes, the rank as uint32, the dims as int64, the number of bytes as uint64, the bytes; all little endian. Prints
 * the level that was taken. Exit code 1 with a sentence if anything fails.
 */
#include "ptc/abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 64, MOST_DIMS = 16 };

static void require(int holds, const char *what) {
  if (holds)
    return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void read_all(FILE *file, void *to, size_t bytes) {
  require(bytes == 0 || fread(to, bytes, 1, file) == 1, "the inputs end early");
}

static void write_all(FILE *file, const void *from, size_t bytes) {
  require(bytes == 0 || fwrite(from, bytes, 1, file) == 1, "cannot write the outputs");
}

static size_t bytes_of(const ptc_tensor *tensor) {
  size_t count = 1;
  for (int32_t axis = 0; axis < tensor->rank; axis++)
    count *= (size_t)tensor->shape[axis];
  return (count * tensor->dtype.bits + 7) / 8;
}

/* The next tensor of the file, into the place of the input that it names; 0 at the end of the file. */
static int read_input(FILE *file, const ptc_function *function, ptc_tensor *inputs) {
  uint32_t length, rank;
  uint64_t bytes;
  char name[256];
  if (fread(&length, sizeof(length), 1, file) != 1)
    return 0;
  require(length < sizeof(name), "a name is too long");
  read_all(file, name, length);
  name[length] = 0;
  uint32_t place = 0;
  while (place < function->input_count && strcmp(function->inputs[place].name, name) != 0)
    place++;
  require(place < function->input_count, "the model has no such input");
  ptc_tensor *tensor = &inputs[place];
  read_all(file, &tensor->dtype.code, 1);
  read_all(file, &tensor->dtype.bits, 1);
  read_all(file, &rank, sizeof(rank));
  require(rank <= MOST_DIMS, "too many dims");
  tensor->dtype.lanes = 1;
  tensor->rank = (int32_t)rank;
  tensor->shape = calloc(MOST_DIMS, sizeof(int64_t));
  read_all(file, tensor->shape, rank * sizeof(int64_t));
  read_all(file, &bytes, sizeof(bytes));
  tensor->data = aligned_alloc(64, (bytes + 64) / 64 * 64);
  read_all(file, tensor->data, bytes);
  return 1;
}

static void write_output(FILE *file, const ptc_value *value, const ptc_tensor *tensor) {
  uint32_t length = (uint32_t)strlen(value->name), rank = (uint32_t)tensor->rank;
  uint64_t bytes = bytes_of(tensor);
  write_all(file, &length, sizeof(length));
  write_all(file, value->name, length);
  write_all(file, &tensor->dtype.code, 1);
  write_all(file, &tensor->dtype.bits, 1);
  write_all(file, &rank, sizeof(rank));
  write_all(file, tensor->shape, rank * sizeof(int64_t));
  write_all(file, &bytes, sizeof(bytes));
  write_all(file, tensor->data, bytes);
}

int main(int argc, char **argv) {
  require(argc == 6, "driver LIBRARY LEVEL THREADS INPUTS OUTPUTS");
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  require(library != 0, library ? "" : dlerror());
  const ptc_model_table *table = dlsym(library, "ptc_model_v1");
  require(table && table->abi_version == PTC_ABI_VERSION, "the library has no table of this version");
  char error[1024] = "";
  ptc_options options = {.struct_size = sizeof(options), .error = error, .error_size = sizeof(error)};
  options.threads = (uint32_t)atoi(argv[3]);
  options.cpu_level = *argv[2] ? argv[2] : 0;
  ptc_model *model = 0;
  ptc_ctx *ctx = 0;
  require(table->create(&options, &model) == PTC_OK, error);
  require(table->ctx_create(model, &ctx) == PTC_OK, "no context");
  const ptc_function *function = &table->functions[0];
  ptc_tensor inputs[MOST_VALUES] = {0}, outputs[MOST_VALUES] = {0};
  int64_t *shapes[MOST_VALUES] = {0};
  require(function->input_count <= MOST_VALUES && function->output_count <= MOST_VALUES, "too many values");
  for (uint32_t i = 0; i < function->input_count; i++)
    inputs[i].device.type = PTC_CPU;
  FILE *in = fopen(argv[4], "rb");
  require(in != 0, "no file of inputs");
  while (read_input(in, function, inputs))
    ;
  fclose(in);
  for (uint32_t i = 0; i < function->output_count; i++)
    shapes[i] = calloc(MOST_DIMS, sizeof(int64_t));
  require(table->output_shapes(ctx, 0, inputs, shapes) == PTC_OK, table->last_error(ctx));
  for (uint32_t i = 0; i < function->output_count; i++) {
    const ptc_value *value = &function->outputs[i];
    int is_found = 0;
    for (int32_t axis = 0; axis < value->rank; axis++)
      is_found |= (value->dims[axis].flags & PTC_DIM_FOUND) != 0;
    outputs[i] = (ptc_tensor){.device = {PTC_CPU, 0}, .rank = value->rank, .dtype = value->dtype, .shape = shapes[i]};
    if (!is_found)
      outputs[i].data = aligned_alloc(64, (bytes_of(&outputs[i]) + 64) / 64 * 64);
  }
  ptc_status status = table->run(ctx, 0, inputs, outputs, 0, 0);
  require(status == PTC_OK, table->last_error(ctx));
  FILE *out = fopen(argv[5], "wb");
  require(out != 0, "cannot write the outputs");
  for (uint32_t i = 0; i < function->output_count; i++)
    write_output(out, &function->outputs[i], &outputs[i]);
  require(fclose(out) == 0, "cannot write the outputs");
  puts(table->cpu_level(model));
  table->ctx_destroy(ctx);
  table->destroy(model);
  return 0;
}
