/* --threads=none: every launch runs on the calling thread, or on the host's pool when it gives one. */
#include "runtime.h"

static void none_prepare(uint32_t threads) { (void)threads; }

static bool none_parallel(ptc_rt_task *tasks, int64_t pieces, uint32_t participants) {
  (void)tasks;
  (void)pieces;
  (void)participants;
  return false;
}

static void none_shutdown(void) {}

const ptc_rt_threading ptc_rt_threading_none = {none_prepare, none_parallel, none_shutdown};
