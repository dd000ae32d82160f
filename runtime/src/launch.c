/* Launching kernels: how a parallel space is cut into pieces.
 *
 * A kernel's iterations are independent of each other, so that any cut gives the same bits; splits that do matter for
 * rounding (reductions) are part of the kernel. A launch is cut into a few pieces per participant: each participant
 * runs its own contiguous share in order, which keeps what it wrote in its own cache for the next kernel, and takes
 * pieces of others only when it has nothing left. More pieces even out a late or preempted thread; fewer save calls,
 * and what each call copies of the operands. A piece never has fewer than `grain` iterations, which the compiler chose
 * to be worth a fork.
 *
 * Launches that do not depend on each other run as one loop, each cut into pieces of its own: the threads meet once. A
 * caller that asks for times gets them one after the other, so that each launch has a time.
 *
 * A recurrence runs in phases: iterations of one phase are independent, phases follow each other. Each phase is a loop
 * of its own: while the threads are awake a fork and join cost less than any other barrier would, and nobody waits for
 * a thread that the system has taken away, unless it was in the middle of a piece. Phases are short, so that a
 * participant gets one piece of each.
 */
#include "fpmode.h"
#include "runtime.h"
#include "shares.h"

#include <string.h>

enum { PIECES_PER_PARTICIPANT = 4, PIECES_OF_COPIES = 1, PIECES_PER_PHASE = 1, MAX_PIECES = 1 << 15 };

/* Longer and shorter pieces take turns, so that contiguous shares of as many pieces are of one size, a longer one
 * first. */
static int64_t first_of_piece(const ptc_rt_task *task, int64_t piece) {
  int64_t share = task->iterations / task->pieces, rest = task->iterations % task->pieces;
  return piece * share + (piece * rest + task->pieces - 1) / task->pieces;
}

void ptc_rt_run_piece(ptc_rt_task *task, int64_t piece, uint32_t participant) {
  for (; piece >= task->pieces; task++)
    piece -= task->pieces;
  int64_t begin = task->first + first_of_piece(task, piece), end = task->first + first_of_piece(task, piece + 1);
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

typedef struct host_loop {
  ptc_rt_task *tasks;
  uint32_t participants;
  ptc_rt_share *shares;
} host_loop;

static void run_host_share(void *argument, size_t index) {
  host_loop *loop = argument;
  ptc_rt_fpmode mode = ptc_rt_fpmode_set_default();
  ptc_rt_run_shares(loop->shares, loop->participants, (uint32_t)index, 0, &loop->tasks, 0);
  ptc_rt_fpmode_restore(mode);
}

static void run_on_host(ptc_rt_task *tasks, int64_t pieces, const ptc_model *model, uint32_t participants) {
  ptc_rt_share shares[participants];
  ptc_rt_share_out(shares, participants, (uint64_t)pieces, 0);
  host_loop loop = {tasks, participants, shares};
  model->pool.parallel_for(model->pool.state, participants, run_host_share, &loop);
}

/* One parallel loop over the iterations of `count` tasks, cut into pieces. */
static void run_loop(ptc_rt_task *tasks, uint32_t count, const ptc_model *model, int64_t participants) {
  int64_t pieces = 0;
  for (uint32_t i = 0; i < count; i++)
    pieces += tasks[i].pieces;
  if (model->pool.parallel_for) {
    run_on_host(tasks, pieces, model, (uint32_t)participants);
  } else if (!model->descriptor->threading->parallel(tasks, pieces, (uint32_t)participants)) {
    for (uint32_t i = 0; i < count; i++)
      run_alone(&tasks[i]);
  }
}

/* How many pieces of at least `grain` iterations there are. */
static int64_t most_pieces(int64_t iterations, int64_t grain) { return grain > 1 ? iterations / grain : iterations; }

static int64_t pieces_of_participant(const ptc_rt_call_state *state, uint32_t site) {
  return state->variant->launches[site].copies ? PIECES_OF_COPIES : PIECES_PER_PARTICIPANT;
}

/* All iterations, `phase` of them at a time, each phase in as many pieces for each participant. */
static void run_phases(ptc_rt_task *task, const ptc_model *model, int64_t phase, int64_t grain, int64_t pieces_each) {
  int64_t participants = model->threads, iterations = task->iterations;
  int64_t most = most_pieces(phase, grain);
  if (participants > most)
    participants = most;
  if (participants <= 1) {
    run_alone(task);
    return;
  }
  int64_t pieces = participants * pieces_each;
  pieces = pieces < most ? pieces : most;
  pieces = pieces < MAX_PIECES ? pieces : MAX_PIECES;
  for (task->first = 0; task->first < iterations; task->first += phase) {
    task->iterations = phase < iterations - task->first ? phase : iterations - task->first;
    task->pieces = pieces < task->iterations ? pieces : task->iterations;
    run_loop(task, 1, model, participants);
  }
}

/* Room for the scratch of a launch; if there is none, the call remembers the site. */
static bool has_scratch(ptc_rt_call_state *state, uint32_t site, int64_t bytes) {
  if (bytes <= (int64_t)state->scratch_stride || ptc_rt_grow_scratch(state, bytes))
    return true;
  state->site = site;
  return false;
}

static ptc_rt_task make_task(const ptc_rt_call_state *state, const ptc_rt_part *part) {
  return (ptc_rt_task){.kernel = state->kernels[state->variant->launches[part->site].kernel],
                       .buffers = part->buffers,
                       .symbols = part->symbols,
                       .iterations = part->iterations,
                       .scratch = state->scratch,
                       .scratch_stride = state->scratch_stride,
                       .site = part->site,
                       .profiled = state->model->profile ? state : 0};
}

static int32_t fault_of(ptc_rt_call_state *state, const ptc_rt_task *task) {
  int fault = atomic_load_explicit(&task->fault, memory_order_relaxed);
  if (fault != 0)
    state->site = task->site;
  return fault;
}

static int32_t launch_phases(ptc_rt_call_state *state, const ptc_rt_part *part, int64_t phase) {
  if (part->iterations <= 0)
    return 0;
  if (!has_scratch(state, part->site, part->scratch_bytes))
    return PTC_RT_FAULT_MEMORY;
  if (state->model->threads == 1 && !state->model->profile) { /* small models are many launches of 100 ns each */
    ptc_rt_kernel *kernel = state->kernels[state->variant->launches[part->site].kernel];
    int32_t fault = kernel(part->buffers, part->symbols, 0, part->iterations, state->scratch);
    if (fault != 0)
      state->site = part->site;
    return fault;
  }
  ptc_rt_task task = make_task(state, part);
  uint64_t start = task.profiled ? ptc_rt_now() : 0;
  bool is_whole = phase == part->iterations;
  run_phases(&task, state->model, phase, part->grain,
             is_whole ? pieces_of_participant(state, part->site) : PIECES_PER_PHASE);
  if (task.profiled)
    ptc_rt_record_launch(&task, start);
  return fault_of(state, &task);
}

int32_t ptc_rt_launch_phases(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *symbols,
                             int64_t iterations, int64_t phase, int64_t grain, int64_t scratch_bytes) {
  ptc_rt_part part = {buffers, symbols, iterations, grain, scratch_bytes, site};
  return launch_phases((ptc_rt_call_state *)call, &part, phase);
}

int32_t ptc_rt_launch(ptc_rt_call *call, uint32_t site, void *const *buffers, const int64_t *symbols,
                      int64_t iterations, int64_t grain, int64_t scratch_bytes) {
  return ptc_rt_launch_phases(call, site, buffers, symbols, iterations, iterations, grain, scratch_bytes);
}

/* Cuts the tasks for as many threads as there is work for; returns their number. */
static int64_t cut(ptc_rt_call_state *state, ptc_rt_task *tasks, const int64_t *most, uint32_t count) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < count; i++)
    sum += most[i];
  int64_t threads = state->model->threads, participants = threads < sum ? threads : sum;
  for (uint32_t i = 0; i < count; i++) {
    int64_t pieces = participants * pieces_of_participant(state, tasks[i].site);
    pieces = pieces < most[i] ? pieces : most[i];
    pieces = pieces < MAX_PIECES / PTC_RT_MOST_JOINED ? pieces : MAX_PIECES / PTC_RT_MOST_JOINED;
    tasks[i].pieces = pieces > 1 ? pieces : 1;
  }
  return participants;
}

int32_t ptc_rt_launch_joined(ptc_rt_call *call, const ptc_rt_part *parts, uint32_t count) {
  ptc_rt_call_state *state = (ptc_rt_call_state *)call;
  int32_t fault = 0;
  if (state->model->profile || state->model->threads == 1) {
    for (uint32_t i = 0; i < count && fault == 0; i++)
      fault = launch_phases(state, &parts[i], parts[i].iterations);
    return fault;
  }
  ptc_rt_task tasks[PTC_RT_MOST_JOINED];
  int64_t most[PTC_RT_MOST_JOINED];
  uint32_t tasked = 0;
  for (uint32_t i = 0; i < count; i++) /* first: the scratch may move */
    if (!has_scratch(state, parts[i].site, parts[i].scratch_bytes))
      return PTC_RT_FAULT_MEMORY;
  for (uint32_t i = 0; i < count; i++)
    if (parts[i].iterations > 0) {
      most[tasked] = most_pieces(parts[i].iterations, parts[i].grain);
      tasks[tasked++] = make_task(state, &parts[i]);
    }
  int64_t participants = cut(state, tasks, most, tasked);
  if (participants > 1)
    run_loop(tasks, tasked, state->model, participants);
  else
    for (uint32_t i = 0; i < tasked; i++)
      run_alone(&tasks[i]);
  for (uint32_t i = 0; i < tasked && fault == 0; i++)
    fault = fault_of(state, &tasks[i]);
  return fault;
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
    run_phases(&task, call->model, count, 1, PIECES_PER_PARTICIPANT);
}

void ptc_rt_copy(void *target, const void *source, int64_t bytes) {
  if (target != source && bytes > 0)
    memcpy(target, source, (size_t)bytes);
}

void ptc_rt_unpack(uint8_t *target, const uint8_t *packed, int64_t count, int32_t bits) {
  for (int64_t i = 0; i < count; i++) {
    int64_t byte = i * bits / 8, shift = i * bits % 8;
    uint32_t pair = packed[byte];
    if (shift + bits > 8) /* an element of 6 bits in two bytes */
      pair |= (uint32_t)packed[byte + 1] << 8;
    target[i] = (uint8_t)(pair >> shift & ((1u << bits) - 1));
  }
}

void ptc_rt_pack(uint8_t *packed, const uint8_t *source, int64_t count, int32_t bits) {
  for (int64_t i = 0; i < count; i++) {
    int64_t byte = i * bits / 8, shift = i * bits % 8;
    uint32_t pair = (source[i] & ((1u << bits) - 1)) << shift;
    packed[byte] = (uint8_t)(shift == 0 ? pair : packed[byte] | pair);
    if (shift + bits > 8)
      packed[byte + 1] = (uint8_t)(pair >> 8);
  }
}
