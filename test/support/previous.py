"""The version before this one, for tests of upgrades. Version 0.1.0 was never published. It stands
for the last commit with the law that preceded least intervention."""

import io
import pathlib
import re
import subprocess
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VERSION, COMMIT = "0.1.0", "91a453e5727ba367444084114134d76c99f1cec6"


def unpack(directory, *paths):
    """Its files, or those below some paths, into a directory. Returns why that is impossible, or
    nothing."""
    only = ["CMakeLists.txt", *paths] if paths else []
    archive = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "archive", COMMIT, *only],
                             cwd=ROOT, capture_output=True)
    if archive.returncode != 0:
        return f"the history has no commit {COMMIT[:12]}, which is {VERSION}"
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(directory)
    stated = re.search(r"project\(mbcas VERSION (\S+)",
                       (pathlib.Path(directory) / "CMakeLists.txt").read_text())[1]
    assert stated == VERSION, f"{COMMIT} is {stated}"
    return ""
