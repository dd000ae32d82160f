"""An NVIDIA GPU through its driver's interface (libcuda.so.1)."""

import ctypes


class Driver:
    """`fills`: memory has a value that no kernel should see. Not under a tool that finds what nobody has written."""

    def __init__(self, fills=True):
        self.fills = fills
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device = ctypes.c_int()
        self("cuDeviceGet", ctypes.byref(device), 0)
        context = ctypes.c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        count = ctypes.c_int()
        self("cuDeviceGetAttribute", ctypes.byref(count), 16, device)
        self.multiprocessors = count.value

    def __call__(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {text.value}")

    def load(self, ptx):
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(8192)
        keys = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER and its size
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), 8192)
        try:
            self("cuModuleLoadDataEx", ctypes.byref(module), ptx.encode(), 2, keys, values)
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n{log.value.decode()}") from None
        return module

    def allocate(self, size):
        pointer = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 16)))
        if self.fills:
            self("cuMemsetD8_v2", pointer, ctypes.c_ubyte(0xCC), ctypes.c_size_t(max(size, 16)))
        return pointer.value

    def upload(self, array):
        pointer = self.allocate(array.nbytes)
        self("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return pointer

    def download(self, pointer, array):
        self("cuMemcpyDtoH_v2", array.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(pointer), ctypes.c_size_t(array.nbytes))

    def find(self, module, name):
        function = ctypes.c_void_p()
        self("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def describe(self, map, pointer):
        """A CUtensorMap, which is aligned to 64 bytes."""
        memory = (ctypes.c_uint8 * (128 + 64))()
        result = (ctypes.c_uint8 * 128).from_buffer(memory, -ctypes.addressof(memory) % 64)
        rank, kind = len(map.extents), {1: 0, 2: 1, 4: 2}[map.element_bytes]
        extents, strides = (ctypes.c_uint64 * rank)(*map.extents), (ctypes.c_uint64 * rank)(*map.strides[1:])
        address = ctypes.c_void_p(pointer + map.offset)
        steps = (ctypes.c_uint32 * rank)(*[1, *map.steps, 1] if map.steps else [1] * rank)
        if map.steps:  # an image: channels, axes, images
            lower, upper = ((ctypes.c_int * (rank - 2))(*values) for values in (map.lower, map.upper))
            self("cuTensorMapEncodeIm2col", result, kind, rank, address, extents, strides, lower, upper, *map.box, steps, 0, 3, 2, 0)
            return result
        box = (ctypes.c_uint32 * rank)(*map.box)
        self("cuTensorMapEncodeTiled", result, kind, rank, address, extents, strides, box, steps, 0, 3, 2, 0)
        return result

    def launch(self, function, blocks, block, arguments, shared=0):
        values = [a if isinstance(a, ctypes.Array) else ctypes.c_uint64(a & (1 << 64) - 1) for a in arguments]
        array = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        if shared:
            self("cuFuncSetAttribute", function, 8, shared)  # the most that a launch may give
        self("cuLaunchKernel", function, blocks, 1, 1, *block, shared, None, array, None)

    def synchronize(self):
        self("cuCtxSynchronize")

    def measure(self, launch):
        """Microseconds a call, of a hundred."""
        events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in events:
            self("cuEventCreate", ctypes.byref(event), 0)
        for _ in range(10):
            launch()
        self("cuEventRecord", events[0], None)
        for _ in range(100):
            launch()
        self("cuEventRecord", events[1], None)
        self("cuEventSynchronize", events[1])
        elapsed = ctypes.c_float()
        self("cuEventElapsedTime", ctypes.byref(elapsed), *events)
        return elapsed.value * 10
