"""little_memory.py PTC MODEL: compiles under limits on address space, from none that would do to enough."""
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ptc, model = sys.argv[1], os.path.abspath(sys.argv[2])
codes, left, limit, needed = set(), set(), 32 << 20, None
with tempfile.TemporaryDirectory() as name:
    while needed is None:
        bound = lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        done = subprocess.run([ptc, "compile", model, "-o", Path(name) / "out.so", "-j2"], preexec_fn=bound,
                              capture_output=True, text=True)
        if done.returncode != 127 and done.returncode >= 0 or "internal" in done.stderr:  # 127: not even loaded
            codes.add(done.returncode)
        if done.returncode == 0:
            needed = limit
        else:
            left |= set(os.listdir(name))
            if done.returncode not in (8, 127):
                print(limit, done.returncode, done.stderr)
        limit += limit // 5
print(f"exit codes {sorted(codes)}: {'nothing left' if not left else left}")
