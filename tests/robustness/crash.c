/* A program whose model, `net`, runs into a wrong pointer inside a kernel ("crash"; on one thread, so that it is
 * the caller's), or runs again and again ("spin").
 */
#include "named.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 50000 };

int main(int count, char **arguments) {
  int crashes = count > 1 && strcmp(arguments[1], "crash") == 0;
  ptc_options options = {.struct_size = sizeof(options), .threads = crashes ? 1 : 2};
  net_dims dims = {BATCH};
  net_model *model;
  net_ctx *ctx;
  if (count < 2 || net_create(&options, &model) != PTC_OK || net_ctx_create(model, &ctx) != PTC_OK)
    return 2;
  float *x = calloc(BATCH, 8 * sizeof(float)), *y = malloc(BATCH * 4 * sizeof(float));
  if (crashes)
    x = (float *)4096;
  for (int i = 0; i < 10000; i++)
    net_run(ctx, &dims, x, y, NULL, NULL);
  return 0;
}
