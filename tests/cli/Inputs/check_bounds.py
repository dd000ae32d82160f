"""What `ptc bench --per-kernel --json` says of the machine's peaks is consistent: python check_bounds.py FILE [MANIFEST]

With the manifest of a library that has a recurrence of 20 steps of 64 units: all steps' bytes count."""

import json
import math
import sys

(row,) = json.load(open(sys.argv[1]))["rows"]
rates = row["peaks"]["gflops_per_second"]
# Wider elements go through at half the rate, narrower ones no slower; other work on the machine may disturb any of them.
assert rates["f32"] > rates["f64"] > 0, rates
assert all(rates[kind] > 0.7 * rates["f32"] for kind in ("bf16", "i8") if kind in rates), rates

*caches, memory = row["peaks"]["bandwidths"]
assert "bytes" not in memory and caches, "memory is the last, and has no end"
sizes = [cache["bytes"] for cache in caches]
assert sizes == sorted(sizes), sizes
assert caches[0]["gbytes_per_second"] > memory["gbytes_per_second"] > 0, "the nearest cache is the fastest"

kernels = row["kernels"]
for kernel in kernels:
    # A kernel is bound by its operations or its bytes, each no faster than the fastest peak of all.
    fastest = max(kernel["gflops_per_second"] / max(rates.values()), kernel["gbytes_per_second"] / caches[0]["gbytes_per_second"])
    assert kernel["bound_share"] >= fastest * (1 - 1e-9), kernel
together = sum(kernel["bound_share"] * kernel["time_us"] for kernel in kernels) / sum(kernel["time_us"] for kernel in kernels)
assert math.isclose(together, row["bound_share"], rel_tol=1e-9), (together, row["bound_share"])

if len(sys.argv) > 2:
    works = {work["name"]: work for work in json.load(open(sys.argv[2]))["kernels"] if "steps" in work}
    (recurrence,) = [kernel for kernel in kernels if kernel["kernel"] in works]
    work = works[recurrence["kernel"]]
    bytes_of_step = work["step_bytes_read"]["at_hint"]
    assert work["steps"]["at_hint"] == 20 and 4 * 64 * 64 * 4 < bytes_of_step < work["bytes_read"]["at_hint"], work
    least = 20 * bytes_of_step / (caches[0]["gbytes_per_second"] * 1e9)
    assert recurrence["bound_share"] * recurrence["time_us"] * 1e-6 >= least * (1 - 1e-9), (recurrence, least)
