"""Places, the version, the commit, and how commands are run."""

import os
import pathlib
import re
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent


class Failure(Exception):
    """An expected failure, as a message for the user."""


def output(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise Failure(f"`{' '.join(map(str, command))[:200]}` failed:\n{result.stderr[-2000:]}")
    return result.stdout


def version():
    """As it is stated, in one place. Tests compare manifests, chart and documents with it."""
    return re.search(r"project\(mbcas VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


def epoch():
    """The one time that a package may contain."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def timestamp():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch()))


def git(*arguments):
    # A container may see the work tree as the property of another user.
    return output("git", "--no-optional-locks", "-c", f"safe.directory={ROOT}", *arguments,
                  cwd=ROOT).strip()
