"""Threads for work that nobody waits for: words on their way to an index, copies to cold storage, a long summary."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Final

# At 0 a thread that computes runs to the end of its slice before Linux looks at one that wakes: a RECORD whose commit
# was on disk waited 4 ms for a core. At 19 it would hardly get one on a busy machine, and keep Python's lock meanwhile.
BEHIND: Final = 10
# What has to keep up with everything that is written. On a single core it does so at 4; at 7 it fell behind for good.
CLOSE_BEHIND: Final = 4


def background_threads(count: int, name: str, *, niceness: int = BEHIND) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix=name, initializer=_step_back, initargs=(niceness,))


def _step_back(niceness: int) -> None:
    """On Linux alone a thread has a niceness of its own; elsewhere the whole process would step back."""
    if sys.platform != "linux":
        return
    thread = threading.get_native_id()
    try:
        os.setpriority(os.PRIO_PROCESS, thread, max(niceness, os.getpriority(os.PRIO_PROCESS, thread)))
    except OSError:
        pass  # a sandbox may forbid it: the work is done all the same
