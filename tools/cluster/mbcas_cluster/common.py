"""What every part needs: errors, messages, places, waiting."""

import fcntl
import os
import pathlib
import sys
import time
from contextlib import contextmanager


class ClusterError(Exception):
    """An expected failure. Its text is one message for the user: what failed and what to do."""


def say(message):
    """Progress goes to stderr, so that stdout carries only what a caller may want to read."""
    print(f"cluster: {message}", file=sys.stderr, flush=True)


def cache_dir():
    chosen = os.environ.get("MBCAS_CACHE")
    if chosen:
        return pathlib.Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base).absolute() / "mbcas"


@contextmanager
def locked(path, waiting_message):
    """Holds an exclusive lock on a file; whoever comes second says so and waits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(waiting_message)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def wait_until(condition, timeout, interval=0.05):
    """Polls until condition() is true; returns its value, or None when time is up."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            return None
        time.sleep(interval)


def tail(path, lines=15):
    try:
        with open(path, errors="replace") as file:
            return "".join(file.readlines()[-lines:])
    except FileNotFoundError:
        return ""
