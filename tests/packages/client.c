/* client LIBRARY: runs a model of one float input and one float output of the same constant shape, and prints the sum
   of the output for an input of ones. */
#include <dlfcn.h>
#include <ptc/abi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  const ptc_model_table *table = library ? dlsym(library, "ptc_model_v1") : NULL;
  if (!table || table->abi_version != PTC_ABI_VERSION)
    return 2;
  ptc_model *model = NULL;
  ptc_ctx *ctx = NULL;
  if (table->create(NULL, &model) != PTC_OK || table->ctx_create(model, &ctx) != PTC_OK)
    return 3;
  const ptc_value *input = &table->functions[0].inputs[0];
  int64_t shape[8], count = 1;
  for (int i = 0; i < input->rank; ++i)
    count *= shape[i] = input->dims[i].extent;
  float *x = malloc(sizeof(float) * count), *y = malloc(sizeof(float) * count), sum = 0;
  for (int64_t i = 0; i < count; ++i)
    x[i] = 1;
  ptc_tensor in = {.data = x, .device = {PTC_CPU, 0}, .rank = input->rank, .dtype = input->dtype, .shape = shape};
  ptc_tensor out = in;
  out.data = y;
  if (table->run(ctx, 0, &in, &out, NULL, NULL) != PTC_OK)
    return fprintf(stderr, "%s\n", table->last_error(ctx)), 4;
  for (int64_t i = 0; i < count; ++i)
    sum += y[i];
  printf("%g\n", sum);
  table->ctx_destroy(ctx);
  table->destroy(model);
  free(x);
  free(y);
  return 0;
}
