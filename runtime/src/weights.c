/* Where the weights are: a section of the library, a file beside it that is mapped, or memory that the host fills.
 *
 * A weights file belongs to one build: its length and the digest in its header must be those that the library was
 * linked with. The file is never looked for in the current folder: "beside the library" means beside the file that the
 * kernel has mapped this code from. Weights are shared and read-only until the first set_weight, which makes a copy
 * that is this model's own.
 */
#define _GNU_SOURCE
#include "ptc/narrow.h"
#include "runtime.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static ptc_status fail(const ptc_options *options, ptc_status status, const char *format, const char *path) {
  if (options->error && options->error_size > 0)
    snprintf(options->error, options->error_size, format, path);
  return status;
}

/* ---- the path beside the library ---- */

typedef struct line_reader {
  int file;
  size_t used, filled;
  char buffer[4096];
} line_reader;

/* The next line without its end; longer ones are cut. false at the end of the file. */
static bool next_line(line_reader *reader, char *line, size_t size) {
  size_t length = 0;
  for (;;) {
    if (reader->used == reader->filled) {
      ssize_t got = read(reader->file, reader->buffer, sizeof(reader->buffer));
      if (got <= 0)
        return false;
      reader->used = 0;
      reader->filled = (size_t)got;
    }
    char c = reader->buffer[reader->used++];
    if (c == '\n')
      break;
    if (length + 1 < size)
      line[length++] = c;
  }
  line[length] = 0;
  return true;
}

/* "55d0-55d8 r-xp 00000000 08:01 1234   /path": writes the path of the mapping that holds `address`. */
static bool path_of_mapping(uintptr_t address, char *path, size_t size) {
  line_reader reader = {.file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
  char line[PATH_MAX + 128];
  bool found = false;
  if (reader.file < 0)
    return false;
  while (!found && next_line(&reader, line, sizeof(line))) {
    char *end, *file = strchr(line, '/');
    uintptr_t low = strtoul(line, &end, 16), high = *end == '-' ? strtoul(end + 1, 0, 16) : 0;
    if (address < low || address >= high || !file || strlen(file) >= size)
      continue;
    strcpy(path, file);
    found = true;
  }
  close(reader.file);
  return found;
}

bool ptc_rt_path_beside(const char *name, char *path, size_t size) {
  if (!path_of_mapping((uintptr_t)&ptc_rt_path_beside, path, size))
    return false;
  char *slash = strrchr(path, '/');
  if (!slash || (size_t)(slash + 1 - path) + strlen(name) >= size)
    return false;
  strcpy(slash + 1, name);
  return true;
}

/* ---- pages ---- */

/* What the system's cache of files does not hold yet comes there as huge pages, and memory that nobody has written to
 * gets them. A wish: where it is not known it is not heard. */
static void wish_for_huge_pages(const char *base, size_t bytes) {
  const uintptr_t page = 65536; /* of any size that processors have */
  uintptr_t start = ((uintptr_t)base + page - 1) / page * page, end = (uintptr_t)base + bytes;
  if (bytes >= PTC_RT_WEIGHTS_HUGE)
    (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}

/* ---- the file ---- */

static ptc_status map_file(ptc_model *model, const ptc_options *options, const char *path) {
  const ptc_rt_weights *weights = &model->descriptor->weights;
  ptc_rt_weights_header header;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return fail(options, PTC_WEIGHTS_UNAVAILABLE, "cannot open the weights file '%s'", path);
  size_t bytes = weights->bytes + PTC_RT_WEIGHTS_START;
  bool whole = read(file, &header, sizeof(header)) == (ssize_t)sizeof(header) &&
               memcmp(header.magic, PTC_RT_WEIGHTS_MAGIC, sizeof(header.magic)) == 0 &&
               lseek(file, 0, SEEK_END) == (off_t)bytes;
  bool ours = whole && header.bytes == weights->bytes && memcmp(header.digest, weights->digest, 32) == 0;
  void *base = ours ? mmap(0, bytes, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  close(file);
  if (!whole)
    return fail(options, PTC_WEIGHTS_UNAVAILABLE, "'%s' is not a whole weights file", path);
  if (!ours)
    return fail(options, PTC_WEIGHTS_UNAVAILABLE, "the weights file '%s' belongs to another build of the model", path);
  if (base == MAP_FAILED)
    return fail(options, PTC_OUT_OF_MEMORY, "cannot map the weights file '%s'", path);
  wish_for_huge_pages(base, bytes);
  model->weights = model->file_weights = (char *)base + PTC_RT_WEIGHTS_START;
  model->mapped = bytes;
  return PTC_OK;
}

static ptc_status open_file(ptc_model *model, const ptc_options *options) {
  char path[PATH_MAX];
  if (options->weights_path)
    return map_file(model, options, options->weights_path);
  if (!ptc_rt_path_beside(model->descriptor->weights.file_name, path, sizeof(path)))
    return fail(options, PTC_WEIGHTS_UNAVAILABLE,
                "cannot tell where the library is; give the path of '%s' in the options",
                model->descriptor->weights.file_name);
  return map_file(model, options, path);
}

/* ---- a copy of one's own ---- */

static char *anonymous(size_t bytes) {
  void *base = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    return 0;
  wish_for_huge_pages(base, bytes);
  return base;
}

ptc_status ptc_rt_weights_open(ptc_model *model, const ptc_options *options) {
  const ptc_rt_weights *weights = &model->descriptor->weights;
  if (weights->bytes == 0)
    return PTC_OK;
  switch (weights->place) {
  case PTC_RT_WEIGHTS_EMBEDDED:
    model->weights = weights->embedded;
    wish_for_huge_pages(weights->embedded, weights->bytes);
    return PTC_OK;
  case PTC_RT_WEIGHTS_FILE:
    return open_file(model, options);
  default:
    model->weights = model->own_weights = anonymous(weights->bytes);
    return model->own_weights ? PTC_OK : fail(options, PTC_OUT_OF_MEMORY, "no memory for the weights%s", "");
  }
}

void ptc_rt_weights_close(ptc_model *model) {
  if (model->own_weights)
    munmap(model->own_weights, model->descriptor->weights.bytes);
  if (model->mapped)
    munmap((char *)model->file_weights - PTC_RT_WEIGHTS_START, model->mapped);
}

/* ---- replacing a weight ---- */

static void narrow(uint32_t narrows, const char *tensor, char *stored) {
  uint32_t bits;
  memcpy(&bits, tensor, sizeof(bits));
  uint16_t rounded = narrows == PTC_RT_NARROWS_TO_F16 ? ptc_rt_half_bits(bits) : ptc_rt_bfloat_bits(bits);
  memcpy(stored, &rounded, sizeof(rounded));
}

static void store_dense(const ptc_rt_stored_form *form, const char *tensor, char *stored) {
  if (!form->narrows) {
    memcpy(stored, tensor, form->bytes);
    return;
  }
  for (uint64_t at = 0; at < form->bytes; at += sizeof(uint16_t))
    narrow(form->narrows, tensor + 2 * at, stored + at);
}

static void follow(const ptc_rt_stored_form *form, const char *tensor, char *stored) {
  const ptc_rt_recipe *recipe = form->recipe;
  int64_t index[PTC_RT_RECIPE_DIMS] = {0}, position = recipe->offset, count = 1;
  size_t width = recipe->element_bytes;
  for (uint32_t dim = 0; dim < recipe->rank; dim++)
    count *= recipe->extents[dim];
  for (int64_t element = 0; element < count; element++, stored += width) {
    bool is_inside =
        recipe->panel < 0 || index[recipe->panel] * recipe->extents[recipe->lane] + index[recipe->lane] < recipe->limit;
    if (is_inside && form->narrows)
      narrow(form->narrows, tensor + position * (int64_t)sizeof(float), stored);
    else if (is_inside)
      memcpy(stored, tensor + position * (int64_t)width, width);
    for (uint32_t dim = recipe->rank; dim-- > 0;) { /* an odometer: one addition an element, but for carries */
      position += recipe->strides[dim];
      if (++index[dim] < recipe->extents[dim])
        break;
      position -= recipe->strides[dim] * recipe->extents[dim];
      index[dim] = 0;
    }
  }
}

/* The planes at the start of a form become as many as the matrix has rows, element by element. */
static void transform_one(const ptc_rt_recipe *recipe, float *stored, size_t elements) {
  size_t rows = recipe->transform_rows, columns = recipe->transform_columns, plane = elements / rows;
  for (size_t e = 0; e < plane; e++) {
    double gathered[PTC_RT_TRANSFORM_COLUMNS];
    for (size_t j = 0; j < columns; j++)
      gathered[j] = (double)stored[j * plane + e];
    for (size_t a = 0; a < rows; a++) {
      double sum = 0;
      for (size_t j = 0; j < columns; j++)
        sum += recipe->transform[columns * a + j] * gathered[j];
      stored[a * plane + e] = (float)sum;
    }
  }
}

/* Nine weights become rows * rows elements of planes. */
static void transform_square(const ptc_rt_recipe *recipe, const double *weights, float *stored, size_t plane) {
  size_t rows = recipe->transform_rows;
  const double *matrix = recipe->transform;
  double half[PTC_RT_TRANSFORM_ROWS][3];
  for (size_t a = 0; a < rows; a++)
    for (size_t j = 0; j < 3; j++)
      half[a][j] = matrix[3 * a] * weights[j] + matrix[3 * a + 1] * weights[3 + j] + matrix[3 * a + 2] * weights[6 + j];
  for (size_t a = 0; a < rows; a++)
    for (size_t b = 0; b < rows; b++)
      stored[(a * rows + b) * plane] =
          (float)(matrix[3 * b] * half[a][0] + matrix[3 * b + 1] * half[a][1] + matrix[3 * b + 2] * half[a][2]);
}

/* The nine planes at the start of a form become rows * rows planes, element by element. */
static void transform_two(const ptc_rt_recipe *recipe, float *stored, size_t elements) {
  size_t plane = elements / ((size_t)recipe->transform_rows * recipe->transform_rows);
  for (size_t e = 0; e < plane; e++) {
    double weights[9];
    for (size_t k = 0; k < 9; k++)
      weights[k] = (double)stored[k * plane + e];
    transform_square(recipe, weights, stored + e, plane);
  }
}

/* The 27 planes at the start of a form become depth_rows * rows * rows planes, element by element. */
static void transform_three(const ptc_rt_recipe *recipe, float *stored, size_t elements) {
  size_t square = (size_t)recipe->transform_rows * recipe->transform_rows,
         plane = elements / (recipe->depth_rows * square);
  const double *deep = recipe->transform + 3 * recipe->transform_rows;
  for (size_t e = 0; e < plane; e++) {
    double gathered[27], weights[9];
    for (size_t k = 0; k < 27; k++)
      gathered[k] = (double)stored[k * plane + e];
    for (size_t z = 0; z < recipe->depth_rows; z++) {
      for (size_t k = 0; k < 9; k++)
        weights[k] = deep[3 * z] * gathered[k] + deep[3 * z + 1] * gathered[9 + k] + deep[3 * z + 2] * gathered[18 + k];
      transform_square(recipe, weights, stored + z * square * plane + e, plane);
    }
  }
}

static void transform(const ptc_rt_recipe *recipe, float *stored, size_t elements) {
  static void (*const of_dims[])(const ptc_rt_recipe *, float *, size_t) = {transform_one, transform_two,
                                                                            transform_three};
  of_dims[recipe->transform_dims - 1](recipe, stored, elements);
}

static const ptc_rt_weight *find(const ptc_rt_descriptor *descriptor, const char *name, size_t *bytes) {
  for (uint32_t i = 0; i < descriptor->table->weight_count; i++)
    if (strcmp(descriptor->table->weights[i].name, name) == 0) {
      *bytes = descriptor->table->weights[i].bytes;
      return &descriptor->weights.weights[i];
    }
  return 0;
}

ptc_status ptc_rt_set_weight(ptc_model *model, const char *name, const void *tensor, size_t bytes) {
  size_t expected = 0;
  if (!model || !name || !tensor)
    return PTC_INVALID_ARGUMENT;
  const ptc_rt_weight *weight = find(model->descriptor, name, &expected);
  if (!weight || bytes != expected)
    return PTC_INVALID_ARGUMENT;
  const ptc_rt_device *device = ptc_rt_device_of(model);
  if (!model->own_weights) {
    char *copy = anonymous(model->descriptor->weights.bytes);
    if (!copy)
      return PTC_OUT_OF_MEMORY;
    const ptc_rt_weights *weights = &model->descriptor->weights; /* what other targets read stays untouched */
    memcpy(copy + weights->begin, model->weights + weights->begin, weights->end - weights->begin);
    model->weights = model->own_weights = copy;
  }
  for (uint32_t i = 0; i < weight->form_count; i++) {
    const ptc_rt_stored_form *form = &weight->forms[i];
    (form->recipe ? follow : store_dense)(form, tensor, model->own_weights + form->offset);
    if (form->recipe && form->recipe->transform)
      transform(form->recipe, (float *)(model->own_weights + form->offset), form->bytes / sizeof(float));
    ptc_status status = device ? device->upload(model, form->offset, form->bytes) : PTC_OK;
    if (status != PTC_OK)
      return status;
  }
  return PTC_OK;
}
