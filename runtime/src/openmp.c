/* --threads=openmp: the threads of the process's OpenMP runtime, through the entry points that libgomp defines and
 * every other runtime (LLVM's, Intel's) offers as well. The references are weak so that a static library that uses
 * another kind of threads links without any OpenMP runtime.
 */
#include "fpmode.h"
#include "runtime.h"
#include "shares.h"

__attribute__((weak, visibility("default"))) extern void GOMP_parallel(void (*body)(void *), void *argument,
                                                                       unsigned threads, unsigned flags);
__attribute__((weak, visibility("default"))) extern int omp_get_thread_num(void);
__attribute__((weak, visibility("default"))) extern int omp_in_parallel(void);

typedef struct team {
  ptc_rt_task *tasks;
  uint32_t participants;
  ptc_rt_share *shares;
} team;

static void openmp_work(void *argument) {
  team *t = argument;
  ptc_rt_fpmode mode = ptc_rt_fpmode_set_default();
  ptc_rt_run_shares(t->shares, t->participants, (uint32_t)omp_get_thread_num(), 0, &t->tasks, 0);
  ptc_rt_fpmode_restore(mode);
}

static void idle(void *argument) { (void)argument; }

static bool present(void) { return GOMP_parallel && omp_get_thread_num && omp_in_parallel; }

static void openmp_prepare(uint32_t threads) {
  if (present() && !omp_in_parallel())
    GOMP_parallel(idle, 0, threads, 0);
}

/* Inside a parallel region of the host the call runs alone: the host has already spread its work. */
static bool openmp_parallel(ptc_rt_task *tasks, int64_t pieces, uint32_t participants) {
  if (!present() || omp_in_parallel())
    return false;
  ptc_rt_share shares[participants]; /* a smaller team works on the shares of those that are not there, too */
  ptc_rt_share_out(shares, participants, (uint64_t)pieces, 0);
  team t = {tasks, participants, shares};
  GOMP_parallel(openmp_work, &t, participants, 0);
  return true;
}

static void openmp_shutdown(void) {}

const ptc_rt_threading ptc_rt_threading_openmp = {openmp_prepare, openmp_parallel, openmp_shutdown};
