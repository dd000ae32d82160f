/* n-grams of rows of numbers, counted (TfIdfVectorizer). The n-grams are the paths of a trie; from every place of a row
 * the numbers at equal distances are followed down as far as the trie goes. One row of the trie is a node: the first of
 * its children, their number, the number that leads to it, and the column where it counts, or -1. Children stand side
 * by side, ascending. */
#include "runtime.h"

#include <string.h>

typedef struct node {
  int64_t first, children, key, column;
} node;

static const node *child_of(const node *trie, const node *parent, int64_t key) {
  int64_t low = parent->first, high = low + parent->children;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (trie[middle].key < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low < parent->first + parent->children && trie[low].key == key ? &trie[low] : 0;
}

/* numbers: rows, columns, nodes, columns of the result, longest distance, shortest and longest n-gram. */
int32_t ptc_rt_ngram_count(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *numbers) {
  (void)call, (void)site;
  int64_t rows = numbers[0], columns = numbers[1], results = numbers[3];
  const node *trie = buffers[1];
  memset(buffers[2], 0, (size_t)(rows * results) * sizeof(float));
  for (int64_t r = 0; r < rows; r++) {
    const int64_t *row = (const int64_t *)buffers[0] + r * columns;
    float *counts = (float *)buffers[2] + r * results;
    int64_t shortest = numbers[5];
    for (int64_t distance = 1; distance <= numbers[4] && distance <= columns && shortest <= numbers[6]; distance++) {
      for (int64_t start = 0; start < columns; start++) {
        const node *at = trie;
        int64_t size = 1;
        for (int64_t i = start; i < columns && size <= numbers[6] && (at = child_of(trie, at, row[i]));
             i += distance, size++)
          if (size >= shortest && at->column >= 0)
            counts[at->column] += 1;
      }
      if (shortest == 1) /* a single number is the same at any distance */
        shortest = 2;
    }
  }
  return 0;
}
