/* A model written by hand in the shape that the compiler emits: y[i] = 2 * x[i] + bias, total = count of runs so far
 * (an alias pair), and a gather whose index may leave its range. Dims: batch in [1, 1000]; variants: batch <= 64 with
 * its guard, or none. Used by the runtime's tests.
 */
#ifndef FAKE_MODEL_H
#define FAKE_MODEL_H

#include "ptc/descriptor.h"

#include <stdbool.h>

enum { FAKE_COLUMNS = 32 };

/* The scale function (0) and the gather function (1), with the given kind of threads. */
const ptc_rt_descriptor *fake_descriptor(const ptc_rt_threading *threading, bool guarded);

#endif
