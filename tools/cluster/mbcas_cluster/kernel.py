"""The few system calls that Python 3.11 has no function for."""

import ctypes
import os
import signal

CLONE_NEWNS = 0x00020000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_BIND = 0x1000
MS_REC = 0x4000
MS_SLAVE = 1 << 19
MS_SHARED = 1 << 20

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def unshare(flags):
    _check(_libc.unshare(flags), "unshare")


def setns(fd, flags):
    _check(_libc.setns(fd, flags), "setns")


def mount(source, target, kind=None, flags=0, options=None):
    encoded = [None if text is None else str(text).encode() for text in (source, target, kind, options)]
    source, target, kind, options = encoded
    _check(_libc.mount(source, target, kind, ctypes.c_ulong(flags), options),
           f"mount on {target.decode()}")


def die_with_parent():
    """For preexec_fn: the kernel kills this process when its parent dies, by whatever means."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
