/* Launching kernels: how a parallel space is cut into pieces.
 *
 * A kernel's iterations are independent of each other, so that any cut gives the same bits; splits that do matter for
 * rounding (reductions) are part of the kernel. A launch is cut into a few pieces per participant: each participant
 * runs its own contiguous share in order, which keeps what it wrote in its own cache for the next kernel, and takes
 * pieces of others only when it has nothing left. More pieces even out a late or preempted thread; fewer save calls. A
 * piece never has fewer than `grain` iterations, which the compiler chose to be worth a fork.
 *
 * A recurrence runs in phases: iterations of one phase are independent, phases follow each other. Each phase is a loop
 * of its own: while the threads are awake a fork and join cost less than any other barrier would, and nobody waits for
 * a thread that the system has taken away, unless it was in the middle of a piece. Phases are short, so that a
 * participant gets one piece of each.
 */
#include "fpmode.h"
#include "runtime.h"

#include <string.h>

enum { PIECES_PER_PARTICIPANT = 4, PIECES_PER_PHASE = 1, MAX_PIECES = 1 << 15 };

void ptc_rt_run_piece(ptc_rt_task *task, int64_t piece, uint32_t participant) {
  int64_t share = task->iterations / task->pieces, rest = task->iterations % task->pieces;
  int64_t begin = task->first + piece * share + (piece < rest ? piece : rest);
  int64_t end = begin + share + (piece < rest);
  uint64_t start = task->profiled ? ptc_rt_now() : 0;
  int32_t fault =
      task->kernel(task->buffers, task->symbols, begin, end, task->scratch + participant * task->scratch_stride);
  if (task->profiled)
    ptc_rt_record_piece(task, begin, end, participant, start);
  int none = 0;
  if (fault != 0)
    atomic_compare_exchange_strong_explicit(&task->fault, &none, fault, memory_order_relaxed, memory_order_relaxed);
}

static void run_alone(ptc_rt_task *task) {
  task->pieces = 1;
  ptc_rt_run_piece(task, 0, 0);
}

typedef struct host_share {
  ptc_rt_task *task;
  int64_t participants;
} host_share;

static void run_host_share(void *argument, size_t index) {
  const host_share *share = argument;
  int64_t pieces = share->task->pieces, participant = (int64_t)index;
  int64_t end = pieces * (participant + 1) / share->participants;
  ptc_rt_fpmode mode = ptc_rt_fpmode_set_default();
  for (int64_t piece = pieces * participant / share->participants; piece < end; piece++)
    ptc_rt_run_piece(share->task, piece, (uint32_t)index);
  ptc_rt_fpmode_restore(mode);
}

/* One parallel loop over task->iterations. */
static void run_loop(ptc_rt_task *task, const ptc_model *model, int64_t participants) {
  if (model->pool.parallel_for) {
    host_share share = {task, participants};
    model->pool.parallel_for(model->pool.state, (size_t)participants, run_host_share, &share);
  } else if (!model->descriptor->threading->parallel(task, (uint32_t)participants)) {
    run_alone(task);
  }
}

/* All iterations, `phase` of them at a time. */
static void run_phases(ptc_rt_task *task, const ptc_model *model, int64_t phase, int64_t grain) {
  int64_t participants = model->threads, iterations = task->iterations;
  int64_t most = grain > 1 ? phase / grain : phase;
  if (participants > most)
    participants = most;
  if (participants <= 1) {
    run_alone(task);
    return;
  }
  bool is_whole = phase == iterations;
  int64_t pieces = participants * (is_whole ? PIECES_PER_PARTICIPANT : PIECES_PER_PHASE);
  pieces = pieces < most ? pieces : most;
  pieces = pieces < MAX_PIECES ? pieces : MAX_PIECES;
  for (task->first = 0; task->first < iterations; task->first += phase) {
    task->iterations = phase < iterations - task->first ? phase : iterations - task->first;
    task->pieces = pieces < task->iterations ? pieces : task->iterations;
    run_loop(task, model, participants);
  }
}

int32_t ptc_rt_launch_phases(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *symbols,
                             int64_t iterations, int64_t phase, int64_t grain, int64_t scratch_bytes) {
  ptc_rt_call_state *state = (ptc_rt_call_state *)call;
  if (iterations <= 0)
    return 0;
  if (scratch_bytes > (int64_t)state->scratch_stride && !ptc_rt_grow_scratch(state, scratch_bytes)) {
    state->site = site;
    return PTC_RT_FAULT_MEMORY;
  }
  ptc_rt_task task = {.kernel = state->kernels[state->variant->launches[site].kernel],
                      .buffers = buffers,
                      .symbols = symbols,
                      .iterations = iterations,
                      .scratch = state->scratch,
                      .scratch_stride = state->scratch_stride,
                      .site = site,
                      .profiled = state->model->profile ? state : 0};
  uint64_t start = task.profiled ? ptc_rt_now() : 0;
  run_phases(&task, state->model, phase, grain);
  if (task.profiled)
    ptc_rt_record_launch(&task, start);
  int fault = atomic_load_explicit(&task.fault, memory_order_relaxed);
  if (fault != 0)
    state->site = site;
  return fault;
}

int32_t ptc_rt_launch(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *symbols,
                      int64_t iterations, int64_t grain, int64_t scratch_bytes) {
  return ptc_rt_launch_phases(call, site, buffers, symbols, iterations, iterations, grain, scratch_bytes);
}

typedef struct body_call {
  void (*body)(void *argument, int64_t index);
  void *argument;
} body_call;

static int32_t run_bodies(void *const *buffers, const int64_t *symbols, int64_t begin, int64_t end, void *scratch) {
  (void)symbols, (void)scratch;
  const body_call *call = buffers[0];
  for (int64_t i = begin; i < end; i++)
    call->body(call->argument, i);
  return 0;
}

void ptc_rt_parallel_for(ptc_rt_call_state *call, int64_t count, void (*body)(void *argument, int64_t index),
                         void *argument) {
  body_call bodies = {body, argument};
  void *buffers[] = {&bodies};
  ptc_rt_task task = {.kernel = run_bodies, .buffers = buffers, .iterations = count};
  if (count > 0)
    run_phases(&task, call->model, count, 1);
}

void ptc_rt_copy(void *target, const void *source, int64_t bytes) {
  if (target != source && bytes > 0)
    memcpy(target, source, (size_t)bytes);
}

void ptc_rt_unpack(uint8_t *target, const uint8_t *packed, int64_t count, int32_t bits) {
  for (int64_t i = 0; i < count; i++)
    target[i] = packed[i * bits / 8] >> (i * bits % 8) & ((1 << bits) - 1);
}

void ptc_rt_pack(uint8_t *packed, const uint8_t *source, int64_t count, int32_t bits) {
  for (int64_t i = 0; i < count; i++) {
    uint8_t code = (uint8_t)((source[i] & ((1 << bits) - 1)) << (i * bits % 8));
    packed[i * bits / 8] = i * bits % 8 == 0 ? code : packed[i * bits / 8] | code;
  }
}
