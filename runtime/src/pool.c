/* The thread pool: fork and join of a parallel loop in well under a microsecond while the threads are awake.
 *
 * Threads. The pool belongs to the library. It starts its workers in the first launch that needs them, never earlier
 * (so that a process may load a model and then fork), and joins them when the last model is destroyed or the library is
 * closed. A child of fork has no workers; it finds the pool empty and starts its own.
 *
 * One loop at a time. A launch takes the pool by a try-lock. If another call has it, the launch says so and its caller
 * runs the pieces itself: nobody waits for another call.
 *
 * A loop. The caller is participant 0, worker w is participant w + 1, and each claims pieces (shares.h). While any
 * piece of a loop is unclaimed or running the caller stays in that loop; hence whoever has claimed a piece may read the
 * pool's task pointer, and a worker that wakes too late finds nothing to claim and touches nothing. The caller never
 * waits for a thread that has not started: it takes that thread's pieces.
 *
 * Waiting. A worker that finds no new epoch spins for about SPINS pauses (tens of microseconds: the gaps between the
 * kernels of one inference) and then sleeps in a futex; a wake-up costs 15-20 microseconds. The caller waits for
 * running pieces only, by spinning, and yields the processor when that takes long.
 *
 * A worker whose core another process wants is taken away in the middle of a piece, and the loop waits for it as long
 * as the other process runs: milliseconds, some of them in every run. The caller sees it by the worker's clock of
 * processor time, which stands still, and lets the worker rest: a few times as long as the wait was, and twice as long
 * as the time before if it had hardly returned. From then on it compares the mean time of a loop with and without the
 * worker, and a worker with which loops are faster, although some of them wait for it, rests no more. So short kernels
 * run as fast as with a thread less, and those that wait for memory, too; long ones keep what the worker does in its
 * part of the time.
 *
 * Cost: measured fork-join of two threads 0.1-0.5 microseconds.
 */
#define _GNU_SOURCE
#include "fpmode.h"
#include "runtime.h"
#include "shares.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
  SPINS = 2000,
  STACK = 1 << 20,
  WATCHED = 100000,          /* ns of waiting in which a worker must have worked for half as long */
  WAITS_OF_REST = 4,         /* rest of a worker that was waited for, in times of that wait, */
  LONGEST_REST = 1000000000, /* and at most, in ns */
  LOOPS_TO_TELL = 256,       /* so many with and without a worker tell which are faster: a few runs of a model */
  LOOPS_KEPT = 2048,         /* when there are so many, those of before count half */
  DOUBT = 1000000000         /* ns after its rest in which a worker that was not missed again is watched */
};

/* What loops took: some runs of a model have the same loops again, so that means can be compared. */
typedef struct loop_times {
  uint64_t sum; /* ns */
  uint32_t loops;
} loop_times;

/* What is known about a worker. All but the atomics belong to the holder of `taken`. */
typedef struct worker_state {
  _Alignas(PTC_RT_LINES) atomic_uint working; /* epoch of the loop that it takes pieces of; 0: none */
  atomic_uint resting;                        /* takes part in no loop */
  pthread_t thread;
  uint64_t rest;            /* ns of its latest rest; 0: never */
  uint64_t returns;         /* when that ends or ended */
  uint64_t worked;          /* its processor time when the caller began to watch */
  loop_times with, without; /* since it first rested */
  bool watched, gone;       /* in this loop: it had pieces when the caller began to watch; its clock stood still */
} worker_state;

static struct {
  _Alignas(PTC_RT_LINES) atomic_uint taken; /* the try-lock */
  _Alignas(PTC_RT_LINES) atomic_uint epoch; /* changes when a loop starts; workers sleep on it */
  _Alignas(PTC_RT_LINES) atomic_uint asleep;
  _Alignas(PTC_RT_LINES) atomic_uint completed; /* pieces of this loop that have returned */
  _Alignas(PTC_RT_LINES) ptc_rt_task *tasks;
  atomic_uint quit;
  atomic_uint workers; /* started; changed by the holder of `taken` only */
  uint32_t watching_forks;
  bool in_doubt;                           /* a worker was taken away lately: loops are timed */
  worker_state states[PTC_RT_MAX_THREADS]; /* of participants; that of the caller is not used */
  ptc_rt_share shares[PTC_RT_MAX_THREADS];
} pool;

static long futex(atomic_uint *word, int operation, unsigned value) {
  return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, 0, 0, 0);
}

static uint32_t next_epoch(uint32_t seen) {
  uint32_t epoch;
  for (int spin = 0; spin < SPINS; spin++) {
    if ((epoch = atomic_load_explicit(&pool.epoch, memory_order_acquire)) != seen)
      return epoch;
    ptc_rt_pause();
  }
  while ((epoch = atomic_load(&pool.epoch)) == seen) {
    atomic_fetch_add(&pool.asleep, 1);
    futex(&pool.epoch, FUTEX_WAIT, seen);
    atomic_fetch_sub(&pool.asleep, 1);
  }
  return epoch;
}

static void *worker(void *argument) {
  uint32_t participant = (uint32_t)(uintptr_t)argument, seen = 0;
  worker_state *state = &pool.states[participant];
  prctl(PR_SET_NAME, "ptc-worker", 0, 0, 0);
  ptc_rt_fpmode_set_default();
  for (;;) {
    seen = next_epoch(seen);
    if (atomic_load_explicit(&pool.quit, memory_order_relaxed))
      return 0;
    /* Not a participant of this loop (it has fewer), or too late for it: the scratch numbers are not ours to use. */
    if ((uint32_t)(atomic_load_explicit(&pool.shares[participant].pieces, memory_order_acquire) >> 32) != seen ||
        atomic_load_explicit(&state->resting, memory_order_relaxed))
      continue;
    atomic_store_explicit(&state->working, seen, memory_order_relaxed);
    ptc_rt_run_shares(pool.shares, pool.workers + 1, participant, seen, &pool.tasks, &pool.completed);
    atomic_store_explicit(&state->working, 0, memory_order_relaxed);
  }
}

static void forget_workers(void) {
  pool.workers = 0;
  pool.in_doubt = false;
  atomic_store(&pool.asleep, 0);
  atomic_store(&pool.taken, 0);
}

/* glibc's pthread_atfork is a static function around this one; the last argument identifies us to __cxa_finalize. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *owner);
extern void __cxa_finalize(void *owner);

static void start(uint32_t workers) {
  if (pool.workers >= workers)
    return;
  if (!pool.watching_forks) {
    pool.watching_forks = 1;
    __register_atfork(0, 0, forget_workers, &pool);
  }
  /* Signals are the host's: its threads take them. */
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK);
  while (pool.workers < workers) {
    uintptr_t participant = pool.workers + 1;
    worker_state *state = &pool.states[participant];
    *state = (worker_state){0};
    if (pthread_create(&state->thread, &attributes, worker, (void *)participant) != 0)
      break; /* a run works with as many as there are */
    pool.workers++;
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &old, 0);
}

static bool take(void) {
  return !atomic_load_explicit(&pool.taken, memory_order_relaxed) &&
         !atomic_exchange_explicit(&pool.taken, 1, memory_order_acquire);
}

static void give_back(void) { atomic_store_explicit(&pool.taken, 0, memory_order_release); }

static uint32_t bounded(uint32_t participants) {
  return participants < PTC_RT_MAX_THREADS ? participants : PTC_RT_MAX_THREADS;
}

static void pool_prepare(uint32_t threads) {
  if (!take())
    return;
  start(bounded(threads) - 1);
  give_back();
}

/* Time that a thread has had of a processor, in ns. */
static uint64_t processor_time(clockid_t clock) {
  struct timespec time = {0};
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t time_of_worker(const worker_state *state) {
  clockid_t clock;
  return pthread_getcpuclockid(state->thread, &clock) == 0 ? processor_time(clock) : 0;
}

static bool is_working(worker_state *state, uint32_t epoch) {
  return atomic_load_explicit(&state->working, memory_order_relaxed) == epoch;
}

static void begin_to_watch(uint32_t epoch) {
  for (worker_state *state = pool.states + 1; state <= pool.states + pool.workers; state++) {
    state->gone = false;
    state->watched = is_working(state, epoch);
    if (state->watched)
      state->worked = time_of_worker(state);
  }
}

/* The caller has waited for WATCHED ns of its own processor time, so that a process that is held up as a whole holds
 * nothing against its workers. */
static void look_for_gone(uint32_t epoch) {
  for (worker_state *state = pool.states + 1; state <= pool.states + pool.workers; state++)
    if (state->watched && is_working(state, epoch) && time_of_worker(state) - state->worked < WATCHED / 2)
      state->gone = true;
}

/* Whether loops are known to be faster with the worker. */
static bool is_worth_waiting(const worker_state *state) {
  const loop_times *with = &state->with, *without = &state->without;
  return with->loops >= LOOPS_TO_TELL && without->loops >= LOOPS_TO_TELL &&
         with->sum * without->loops < without->sum * with->loops;
}

static void let_gone_rest(uint64_t waited) {
  uint64_t now = ptc_rt_now();
  for (worker_state *state = pool.states + 1; state <= pool.states + pool.workers; state++) {
    if (!state->gone || is_worth_waiting(state))
      continue;
    bool hardly_returned = now - state->returns < state->rest;
    uint64_t rest = WAITS_OF_REST * waited;
    if (hardly_returned && rest < 2 * state->rest)
      rest = 2 * state->rest;
    state->rest = rest < LONGEST_REST ? rest : LONGEST_REST;
    state->returns = now + state->rest;
    atomic_store_explicit(&state->resting, 1, memory_order_relaxed);
    pool.in_doubt = true;
  }
}

static bool is_resting(worker_state *state) { return atomic_load_explicit(&state->resting, memory_order_relaxed); }

/* Brings back those who have rested; returns the time. */
static uint64_t end_rests(void) {
  uint64_t now = ptc_rt_now();
  pool.in_doubt = false;
  for (worker_state *state = pool.states + 1; state <= pool.states + pool.workers; state++) {
    if (is_resting(state) && now >= state->returns)
      atomic_store_explicit(&state->resting, 0, memory_order_relaxed);
    pool.in_doubt |= state->rest != 0 && now < state->returns + DOUBT;
  }
  return now;
}

static void count_loop(uint64_t time, uint32_t participants) {
  for (worker_state *state = pool.states + 1; state < pool.states + participants; state++) {
    if (state->rest == 0)
      continue;
    loop_times *times = is_resting(state) ? &state->without : &state->with;
    times->sum += time;
    if (++times->loops < LOOPS_KEPT)
      continue;
    state->with = (loop_times){state->with.sum / 2, state->with.loops / 2};
    state->without = (loop_times){state->without.sum / 2, state->without.loops / 2};
  }
}

/* Whether nobody but the caller would take part. */
static bool all_rest(uint32_t participants) {
  for (worker_state *state = pool.states + 1; state < pool.states + participants; state++)
    if (!is_resting(state))
      return false;
  return true;
}

static bool is_completed(uint32_t pieces) {
  return atomic_load_explicit(&pool.completed, memory_order_acquire) == pieces;
}

static void join_loop(uint32_t pieces, uint32_t epoch) {
  for (int spin = 0; spin < 2 * SPINS; spin++) {
    if (is_completed(pieces))
      return;
    ptc_rt_pause();
  }
  uint64_t began = ptc_rt_now(), watching = processor_time(CLOCK_THREAD_CPUTIME_ID);
  begin_to_watch(epoch);
  while (!is_completed(pieces)) {
    sched_yield();
    if (watching && processor_time(CLOCK_THREAD_CPUTIME_ID) - watching >= WATCHED) {
      look_for_gone(epoch);
      watching = 0;
    }
  }
  let_gone_rest(ptc_rt_now() - began);
}

static void run_together(ptc_rt_task *tasks, uint64_t pieces, uint32_t participants) {
  uint32_t epoch = atomic_load_explicit(&pool.epoch, memory_order_relaxed) + 1;
  if (epoch == 0) /* what a new worker takes for already seen */
    epoch = 1;
  pool.tasks = tasks;
  atomic_store_explicit(&pool.completed, 0, memory_order_relaxed);
  ptc_rt_share_out(pool.shares, participants, pieces, epoch);
  atomic_store(&pool.epoch, epoch);
  if (atomic_load(&pool.asleep) != 0)
    futex(&pool.epoch, FUTEX_WAKE, 0x7fffffff);
  ptc_rt_run_shares(pool.shares, participants, 0, epoch, &pool.tasks, &pool.completed);
  join_loop((uint32_t)pieces, epoch);
}

/* Each task in one piece: nobody else takes any. */
static void run_without_workers(ptc_rt_task *tasks, uint64_t pieces) {
  for (ptc_rt_task *task = tasks; pieces > 0; task++) {
    pieces -= (uint64_t)task->pieces;
    task->pieces = 1;
    ptc_rt_run_piece(task, 0, 0);
  }
}

static bool pool_parallel(ptc_rt_task *tasks, int64_t count, uint32_t participants) {
  if (!take())
    return false;
  participants = bounded(participants);
  start(participants - 1);
  if (participants > pool.workers + 1)
    participants = pool.workers + 1;
  uint64_t pieces = (uint64_t)count;
  if (!pool.in_doubt) {
    run_together(tasks, pieces, participants);
  } else {
    uint64_t began = end_rests();
    if (all_rest(participants))
      run_without_workers(tasks, pieces);
    else
      run_together(tasks, pieces, participants);
    count_loop(ptc_rt_now() - began, participants);
  }
  give_back();
  return true;
}

/* A call that still has the pool when the process exits keeps it: after a while the threads are left to the kernel. */
static void pool_shutdown(void) {
  for (int attempt = 0; !take(); attempt++) {
    if (attempt > 100000)
      return;
    sched_yield();
  }
  atomic_store(&pool.quit, 1);
  atomic_fetch_add(&pool.epoch, 1);
  futex(&pool.epoch, FUTEX_WAKE, 0x7fffffff);
  for (worker_state *state = pool.states + 1; state <= pool.states + pool.workers; state++)
    pthread_join(state->thread, 0);
  pool.workers = 0;
  pool.in_doubt = false;
  atomic_store(&pool.quit, 0);
  if (pool.watching_forks) {
    pool.watching_forks = 0;
    __cxa_finalize(&pool);
  }
  give_back();
}

/* Names differ between the kinds of threads: merging the objects merges sections of one name, and the linker could no
 * longer drop a kind alone. */
const ptc_rt_threading ptc_rt_threading_pool = {pool_prepare, pool_parallel, pool_shutdown};
