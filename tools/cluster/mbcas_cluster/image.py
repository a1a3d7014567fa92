"""The one image a node starts with: pause for pod sandboxes and a small load generator in one."""

import hashlib
import io
import json
import pathlib
import platform
import shutil
import subprocess
import tarfile

from .common import ClusterError

NAME = "mbcas.local/workload:1"
SOURCE = pathlib.Path(__file__).parent.parent / "workload" / "workload.c"


def write_archive(directory):
    """Compiles the program and wraps it in a docker-archive, which needs no image builder."""
    if not shutil.which("gcc"):
        raise ClusterError("gcc is not installed: run `make setup`")
    program = directory / "workload"
    result = subprocess.run(["gcc", "-O2", "-Wall", "-static", "-pthread", "-o", program, SOURCE],
                            capture_output=True, text=True)
    if result.returncode != 0:
        raise ClusterError(f"the workload image's program does not compile:\n{result.stderr}")
    layer = _tar({"workload": (program.read_bytes(), 0o755)})
    config = json.dumps({
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "amd64"),
        "os": "linux",
        "config": {"Entrypoint": ["/workload"], "Cmd": ["pause"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
    }).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = [{"Config": config_name, "RepoTags": [NAME], "Layers": ["layer.tar"]}]
    archive = directory / "workload.tar"
    archive.write_bytes(_tar({"manifest.json": (json.dumps(manifest).encode(), 0o644),
                              config_name: (config, 0o644), "layer.tar": (layer, 0o644)}))
    return archive


def _tar(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
