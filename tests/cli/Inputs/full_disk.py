"""full_disk.py PTC MODEL: compiles into a file system of 32 KB that holds an older library, if one can be mounted."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ptc, model = sys.argv[1:]
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    script = f'mount -t tmpfs -o size=32k none "{folder}" && cd "{folder}" && echo old > out.so && {{ '
    script += f'"{ptc}" compile "{os.path.abspath(model)}" -o out.so; echo code $?; cat out.so; ls -A; }} 2>&1'
    # A mount name space of one's own: as root, or in a user name space where the system allows them.
    for prefix in (["unshare", "-m"], ["unshare", "-rm"]):
        try:
            done = subprocess.run([*prefix, "sh", "-c", script], capture_output=True, text=True)
        except OSError:
            continue
        if done.returncode == 0:
            break
    else:
        sys.exit(print("skipped: no file system can be mounted"))
text, code, old, *rest = (line for line in done.stdout.strip().splitlines() if not line.startswith("  help:"))
reason = "No space left on device" if "No space left on device" in text else text
left = "nothing left" if rest == ["out.so"] else f"left: {rest}"
print(f"{reason}, {code}, {left}, the old file {'kept' if old == 'old' else 'changed'}")
