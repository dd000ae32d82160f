"""The CPU levels of a library that this machine runs."""


def usual():
    """Those that `--cpu=auto` always has."""
    flags = next((line for line in open("/proc/cpuinfo") if line.startswith("flags")), "").split()
    wide = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= set(flags)
    return ("x86-64-v3", "x86-64-v4") if wide else ("x86-64-v3",)
