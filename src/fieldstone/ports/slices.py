"""How long a thread keeps its core before one that wakes may have it, where Linux lets a thread say so (from 6.12 on).

A thread that was just let in is safe until the end of its slice, 1 to 3 ms; whoever wakes meanwhile then waits for the
next tick, 4 ms on many machines, even with another core idle. Python has no call for it, and most C libraries neither.
"""

import ctypes
import os
import platform
import struct
import sys
import threading
from typing import Final

LEAST_NS: Final = 100_000  # that Linux takes
SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274, "riscv64": 274}  # the number of the system call
SCHED_GETATTR: Final = {"x86_64": 315, "aarch64": 275, "riscv64": 275}
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQ")  # size, policy, flags, niceness, priority, slice, deadline, period


def take_short_slices() -> None:
    """For this thread. Where that is not to be had, all goes on as before: it only takes others longer."""
    call = SCHED_SETATTR.get(platform.machine())
    if sys.platform != "linux" or call is None:
        return
    niceness = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    wanted = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, niceness, 0, LEAST_NS, 0, 0)
    ctypes.CDLL(None).syscall(call, 0, wanted, 0)


def slice_ns() -> int | None:
    """Of this thread. None where Linux does not tell."""
    call = SCHED_GETATTR.get(platform.machine())
    if sys.platform != "linux" or call is None:
        return None
    found = ctypes.create_string_buffer(_ATTRIBUTES.size)
    refused = ctypes.CDLL(None).syscall(call, 0, found, _ATTRIBUTES.size, 0)
    return None if refused else (_ATTRIBUTES.unpack(found.raw)[5] or None)
