"""damage.py LIBRARY.so: beside it cutN.so (its first N %), changed.so (a byte of its texts) and crashes.so (code that traps)."""
import struct
import sys
from pathlib import Path

library = Path(sys.argv[1])
whole = library.read_bytes()
for percent in (1, 10, 50, 90, 99):
    library.with_name(f"cut{percent}.so").write_bytes(whole[: len(whole) * percent // 100])


def section(name):
    """Offset and size of a section: ELF's tables, 64 bits, little endian."""
    (table,) = struct.unpack_from("<Q", whole, 0x28)
    size, count, names = struct.unpack_from("<HHH", whole, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", whole, table + i * size) for i in range(count)]
    for header in headers:
        start = headers[names][4] + header[0]
        if whole[start : whole.index(b"\0", start)] == name:
            return header[4], header[5]
    raise LookupError(name)


def changed(at, bytes):
    return whole[:at] + bytes + whole[at + len(bytes) :]


at = whole.index(b"made by") if b"made by" in whole else whole.index(b"ptc 0.")
library.with_name("changed.so").write_bytes(changed(at, b"PTC"))
start, size = section(b".text")
library.with_name("crashes.so").write_bytes(changed(start, b"\x0f\x0b" * (size // 2)))
