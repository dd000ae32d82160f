/* Who runs which pieces of a parallel loop, the same under all kinds of threads.
 *
 * Each participant owns a share, one 64-bit word
 *
 *     epoch (32 bits) | next (16) | end (16)
 *
 * that holds the pieces [next, end) it has not started yet. A piece is claimed by compare-and-swap of next to next + 1,
 * first from the own share, then from others'. So a participant works in order on what it worked on in the kernel
 * before, which is in its cache, and a late one delays nobody. The word carries the epoch of its loop, so that a claim
 * by a thread that comes too late fails.
 */
#ifndef PTC_RUNTIME_SHARES_H
#define PTC_RUNTIME_SHARES_H

#include "runtime.h"

enum { PTC_RT_LINES = 2 * PTC_RT_LINE /* adjacent lines are fetched in pairs */ };

typedef struct ptc_rt_share {
  _Alignas(PTC_RT_LINES) atomic_ullong pieces;
} ptc_rt_share;

/* Pieces are below 2^16. */
static inline void ptc_rt_share_out(ptc_rt_share *shares, uint32_t participants, uint64_t pieces, uint32_t epoch) {
  for (uint64_t p = 0; p < participants; p++) {
    uint64_t begin = pieces * p / participants, end = pieces * (p + 1) / participants;
    atomic_store_explicit(&shares[p].pieces, (uint64_t)epoch << 32 | begin << 16 | end, memory_order_release);
  }
}

/* The next piece of a share in `epoch`, or -1. */
static inline int64_t ptc_rt_claim(ptc_rt_share *share, uint32_t epoch) {
  unsigned long long word = atomic_load_explicit(&share->pieces, memory_order_acquire);
  for (;;) {
    uint32_t next = (uint32_t)(word >> 16) & 0xffff, end = (uint32_t)word & 0xffff;
    if ((uint32_t)(word >> 32) != epoch || next >= end)
      return -1;
    if (atomic_compare_exchange_weak_explicit(&share->pieces, &word, word + (1u << 16), memory_order_acq_rel,
                                              memory_order_acquire))
      return next;
  }
}

/* Runs pieces until none is left to claim. `completed`, if not NULL, counts those that have returned. */
static inline void ptc_rt_run_shares(ptc_rt_share *shares, uint32_t participants, uint32_t participant, uint32_t epoch,
                                     ptc_rt_task *const *tasks, atomic_uint *completed) {
  for (uint32_t distance = 0; distance < participants; distance++) {
    uint32_t owner = (participant + distance) % participants;
    for (int64_t piece; (piece = ptc_rt_claim(&shares[owner], epoch)) >= 0;) {
      ptc_rt_run_piece(*tasks, piece, participant);
      if (completed)
        atomic_fetch_add_explicit(completed, 1, memory_order_release);
    }
  }
}

#endif
