"""A kernel with a fault that a tool of compute-sanitizer must find: python tests/ptx/faults.py TOOL.

What a tool says of real kernels is worth something only if it sees them; sanitizer.py asks here first.
"""

import contextlib
import sys

from driver import Driver

HEADER = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry fault(.param .u64 data)
{
  .shared .align 4 .b32 shared[64];
  .reg .pred %p;
  .reg .b32 %t, %r, %a;
  .reg .b64 %d;
  ld.param.u64 %d, [data];
  mov.u32 %t, %tid.x;
  mov.u32 %a, shared;
"""
BODIES = {
    "memcheck": "st.global.u32 [%d + 64], %t;",  # behind the end
    "racecheck": "st.shared.u32 [%a], %t; ld.shared.u32 %r, [%a]; st.global.u32 [%d], %r;",  # of two warps
    "initcheck": "ld.global.u32 %r, [%d + 4]; st.global.u32 [%d], %r;",  # what nobody wrote
    "synccheck": "setp.lt.u32 %p, %t, 7; @%p bar.sync 0; st.global.u32 [%d], %t;",  # a part of a warp waits
}


def main():
    driver = Driver(fills=False)
    module = driver.load(HEADER + BODIES[sys.argv[1]] + " ret; }")
    with contextlib.suppress(RuntimeError):  # the device may stop at the fault
        driver.launch(driver.find(module, "fault"), 1, (64, 1, 1), [driver.allocate(16)])
        driver.synchronize()


if __name__ == "__main__":
    main()
