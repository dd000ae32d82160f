/* Operators that the tests of this folder bring along. Compiled as C17 and as C++17. */
#include <ptc/custom_op.h>

#include <ctype.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

static ptc_status refuse(char *error, size_t size, const char *sentence) {
  snprintf(error, size, "%s", sentence);
  return PTC_INVALID_ARGUMENT;
}

/* ---- Scale: y = factor * x + offset, for f32 and f64, on all threads ---- */

static ptc_status infer_scale(const ptc_custom_node *node, const ptc_custom_type *inputs, ptc_custom_type *outputs,
                              char *error, size_t size) {
  if (node->input_count != 1 || inputs[0].dtype.code != PTC_FLOAT || inputs[0].dtype.bits < 32)
    return refuse(error, size, "Scale takes one tensor of float or double");
  ptc_set_same_type(&outputs[0], &inputs[0]);
  return PTC_OK;
}

enum { ROW = 1024 };

static void scale_row(void *argument, int64_t row) {
  const ptc_custom_call *call = (const ptc_custom_call *)argument;
  float factor = ptc_float_attribute(call->node, "factor", 1), offset = ptc_float_attribute(call->node, "offset", 0);
  const ptc_tensor *x = &call->inputs[0];
  int64_t count = ptc_count_elements(x), end = (row + 1) * ROW < count ? (row + 1) * ROW : count;
  for (int64_t i = row * ROW; i < end; i++)
    if (x->dtype.bits == 32)
      ((float *)call->outputs[0].data)[i] = ((const float *)x->data)[i] * factor + offset;
    else
      ((double *)call->outputs[0].data)[i] = ((const double *)x->data)[i] * factor + offset;
}

static ptc_status run_scale(const ptc_custom_call *call) {
  int64_t count = ptc_count_elements(&call->inputs[0]);
  call->parallel_for(call, (count + ROW - 1) / ROW, scale_row, (void *)call);
  return PTC_OK;
}

extern const ptc_custom_op scale_op;
const ptc_custom_op scale_op = {sizeof(ptc_custom_op), PTC_CUSTOM_OP_VERSION, infer_scale, run_scale, NULL, NULL, NULL};

/* ---- Halves: the left and the right half of the last dim; the optional bias is added to the right one ---- */

static ptc_status infer_halves(const ptc_custom_node *node, const ptc_custom_type *inputs, ptc_custom_type *outputs,
                               char *error, size_t size) {
  const ptc_custom_type *x = &inputs[0];
  if (node->output_count > 2 || x->rank < 1)
    return refuse(error, size, "Halves has two outputs and needs a dim");
  for (uint32_t i = 0; i < node->output_count; i++) {
    ptc_set_same_type(&outputs[i], x);
    const char *width = x->dims[x->rank - 1];
    if (i == 0)
      ptc_set_dim(&outputs[i], x->rank - 1, "floordiv(%s, 2)", width);
    else
      ptc_set_dim(&outputs[i], x->rank - 1, "%s - floordiv(%s, 2)", width, width);
  }
  return PTC_OK;
}

static ptc_status run_halves(const ptc_custom_call *call) {
  const ptc_tensor *x = &call->inputs[0], *bias = call->node->input_count > 1 ? &call->inputs[1] : NULL;
  int64_t width = x->shape[x->rank - 1], left = width / 2, rows = width ? ptc_count_elements(x) / width : 0;
  size_t bytes = x->dtype.bits / 8;
  for (uint32_t side = 0; side < call->node->output_count; side++) {
    ptc_tensor *y = &call->outputs[side];
    if (y->rank < 0)
      continue;
    int64_t from = side ? left : 0, size = side ? width - left : left;
    for (int64_t row = 0; row < rows; row++)
      memcpy((char *)y->data + row * size * bytes, (const char *)x->data + (row * width + from) * bytes, size * bytes);
    if (side == 1 && bias && bias->rank >= 0)
      for (int64_t i = 0; i < rows * size; i++)
        ((float *)y->data)[i] += *(const float *)bias->data;
  }
  return PTC_OK;
}

extern const ptc_custom_op halves_op;
const ptc_custom_op halves_op = {
    sizeof(ptc_custom_op), PTC_CUSTOM_OP_VERSION, infer_halves, run_halves, NULL, NULL, NULL};

/* ---- Above: the elements of x [n] above the threshold, whose number depends on them ---- */

static ptc_status infer_above(const ptc_custom_node *node, const ptc_custom_type *inputs, ptc_custom_type *outputs,
                              char *error, size_t size) {
  (void)error, (void)size;
  ptc_set_type(&outputs[0], inputs[0].dtype, 1);
  if (ptc_int_attribute(node, "bounded", 1))
    ptc_set_dim(&outputs[0], 0, "<= %s", inputs[0].dims[0]);
  else
    ptc_set_dim(&outputs[0], 0, "?");
  return PTC_OK;
}

static ptc_status measure_above(const ptc_custom_call *call) {
  const float *x = (const float *)call->inputs[0].data, threshold = *(const float *)call->inputs[1].data;
  int64_t count = ptc_count_elements(&call->inputs[0]), found = 0;
  float *kept = (float *)call->allocate(call, (size_t)count * sizeof(float));
  if (!kept)
    return PTC_OUT_OF_MEMORY;
  for (int64_t i = 0; i < count; i++)
    if (x[i] > threshold)
      kept[found++] = x[i];
  *call->kept = kept;
  call->outputs[0].shape[0] = found;
  return PTC_OK;
}

static ptc_status run_above(const ptc_custom_call *call) {
  memcpy(call->outputs[0].data, *call->kept, (size_t)call->outputs[0].shape[0] * sizeof(float));
  return PTC_OK;
}

extern const ptc_custom_op above_op;
const ptc_custom_op above_op = {
    sizeof(ptc_custom_op), PTC_CUSTOM_OP_VERSION, infer_above, run_above, measure_above, NULL, NULL};

/* ---- Shout: words in upper case with the ending of the attribute, and how long they are ---- */

static ptc_status infer_shout(const ptc_custom_node *node, const ptc_custom_type *inputs, ptc_custom_type *outputs,
                              char *error, size_t size) {
  (void)node;
  if (inputs[0].dtype.code != PTC_STRING)
    return refuse(error, size, "Shout takes strings");
  ptc_dtype integer = {PTC_INT, 64, 1};
  ptc_set_same_type(&outputs[0], &inputs[0]);
  ptc_set_same_type(&outputs[1], &inputs[0]);
  outputs[1].dtype = integer;
  return PTC_OK;
}

static ptc_status run_shout(const ptc_custom_call *call) {
  const char *ending = ptc_text_attribute(call->node, "ending", "!");
  size_t extra = strlen(ending);
  const ptc_string *words = (const ptc_string *)call->inputs[0].data;
  for (int64_t i = 0; i < ptc_count_elements(&call->inputs[0]); i++) {
    char *text = (char *)call->allocate(call, (size_t)words[i].bytes + extra);
    for (int64_t j = 0; j < words[i].bytes; j++)
      text[j] = (char)toupper((unsigned char)words[i].data[j]);
    memcpy(text + words[i].bytes, ending, extra);
    ptc_string *made = (ptc_string *)call->outputs[0].data + i;
    made->data = text;
    made->bytes = words[i].bytes + (int64_t)extra;
    ((int64_t *)call->outputs[1].data)[i] = made->bytes;
  }
  return PTC_OK;
}

extern const ptc_custom_op shout_op;
const ptc_custom_op shout_op = {sizeof(ptc_custom_op), PTC_CUSTOM_OP_VERSION, infer_shout, run_shout, NULL, NULL, NULL};

/* ---- Flip: every bit of x, whatever its type; 4-bit elements come packed ---- */

static ptc_status infer_flip(const ptc_custom_node *node, const ptc_custom_type *inputs, ptc_custom_type *outputs,
                             char *error, size_t size) {
  (void)node, (void)error, (void)size;
  ptc_set_same_type(&outputs[0], &inputs[0]);
  return PTC_OK;
}

static ptc_status run_flip(const ptc_custom_call *call) {
  int64_t bytes = (ptc_count_elements(&call->inputs[0]) * call->inputs[0].dtype.bits + 7) / 8;
  for (int64_t i = 0; i < bytes; i++)
    ((uint8_t *)call->outputs[0].data)[i] = (uint8_t)~((const uint8_t *)call->inputs[0].data)[i];
  return PTC_OK;
}

extern const ptc_custom_op flip_op;
const ptc_custom_op flip_op = {sizeof(ptc_custom_op), PTC_CUSTOM_OP_VERSION, infer_flip, run_flip, NULL, NULL, NULL};

/* ---- Tile: shape given by a constant input; a table made once a node from lists and tensors of attributes ---- */

static ptc_status infer_lookup(const ptc_custom_node *node, const ptc_custom_type *inputs, ptc_custom_type *outputs,
                               char *error, size_t size) {
  (void)node;
  ptc_dtype real = {PTC_FLOAT, 32, 1};
  const int64_t *repeats = (const int64_t *)inputs[1].data;
  if (!repeats)
    return refuse(error, size, "the repeats must be a constant");
  ptc_set_type(&outputs[0], real, inputs[0].rank + 1);
  memcpy(outputs[0].dims, inputs[0].dims, sizeof(outputs[0].dims));
  ptc_set_dim(&outputs[0], inputs[0].rank, "%lld", (long long)*repeats);
  return PTC_OK;
}

static ptc_status create_lookup(const ptc_custom_node *node, void **state, char *error, size_t size) {
  const ptc_custom_attribute *keys = ptc_find_attribute(node, "keys", PTC_ATTRIBUTE_INTS);
  const ptc_custom_attribute *values = ptc_find_attribute(node, "values", PTC_ATTRIBUTE_TENSORS);
  const ptc_custom_attribute *offsets = ptc_find_attribute(node, "offsets", PTC_ATTRIBUTE_FLOATS);
  const ptc_custom_attribute *names = ptc_find_attribute(node, "names", PTC_ATTRIBUTE_STRINGS);
  if (!keys || !keys->is_list || !values || values->is_list || !offsets || !names || names->count != keys->count)
    return refuse(error, size, "Lookup needs keys, values, offsets and as many names");
  float *table = (float *)calloc(256, sizeof(float));
  const ptc_tensor *numbers = (const ptc_tensor *)values->values;
  for (int64_t i = 0; i < keys->count; i++) {
    int64_t key = ((const int64_t *)keys->values)[i];
    table[key & 255] = ((const float *)numbers->data)[i] + ((const float *)offsets->values)[0] +
                       (float)((const ptc_string *)names->values)[i].bytes;
  }
  *state = table;
  return PTC_OK;
}

static ptc_status run_lookup(const ptc_custom_call *call) {
  const ptc_tensor *x = &call->inputs[0];
  int64_t repeats = call->outputs[0].shape[x->rank];
  for (int64_t i = 0; i < ptc_count_elements(x); i++) {
    int32_t key = ((const int32_t *)x->data)[i];
    if (key < 0 || key > 255) {
      snprintf(call->error, call->error_size, "the key %d is none of the table's", (int)key);
      return PTC_INVALID_ARGUMENT;
    }
    for (int64_t j = 0; j < repeats; j++)
      ((float *)call->outputs[0].data)[i * repeats + j] = ((const float *)call->state)[key];
  }
  return PTC_OK;
}

extern const ptc_custom_op lookup_op;
const ptc_custom_op lookup_op = {
    sizeof(ptc_custom_op), PTC_CUSTOM_OP_VERSION, infer_lookup, run_lookup, NULL, create_lookup, free};

/* ---- What is wrong ---- */

extern const ptc_custom_op newer_op;
const ptc_custom_op newer_op = {
    sizeof(ptc_custom_op), PTC_CUSTOM_OP_VERSION + 1, infer_scale, run_scale, NULL, NULL, NULL};

static ptc_status infer_nonsense(const ptc_custom_node *node, const ptc_custom_type *inputs, ptc_custom_type *outputs,
                                 char *error, size_t size) {
  (void)error, (void)size;
  if (ptc_int_attribute(node, "crash", 0))
    abort();
  ptc_set_same_type(&outputs[0], &inputs[0]);
  ptc_set_dim(&outputs[0], 0, "%s", ptc_text_attribute(node, "dim", "3"));
  return PTC_OK;
}

extern const ptc_custom_op nonsense_op;
const ptc_custom_op nonsense_op = {
    sizeof(ptc_custom_op), PTC_CUSTOM_OP_VERSION, infer_nonsense, run_flip, NULL, NULL, NULL};

#ifdef __cplusplus
}
#endif
