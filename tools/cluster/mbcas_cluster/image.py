"""Images, made without an image builder; and the one a node starts with: pause for pod sandboxes
and the small workloads of samples and tests in one."""

import hashlib
import io
import json
import os
import pathlib
import platform
import shutil
import subprocess
import tarfile
import time

from .common import ClusterError

NAME = "mbcas.local/workload:1"
SOURCE = pathlib.Path(__file__).parent.parent / "workload" / "workload.c"


def write_archive(directory):
    """Compiles the workload and wraps it."""
    if not shutil.which("gcc"):
        raise ClusterError("gcc is not installed: run `make setup`")
    program = directory / "workload"
    result = subprocess.run(["gcc", "-O2", "-Wall", "-static", "-s", "-pthread", "-o", program,
                             SOURCE, "-lm"], capture_output=True, text=True)
    if result.returncode != 0:
        raise ClusterError(f"the workload image's program does not compile:\n{result.stderr}")
    archive = directory / "workload.tar"
    write(archive, [NAME], {"workload": (program.read_bytes(), 0o755)},
          {"Entrypoint": ["/workload"], "Cmd": ["pause"], "User": "65532:65532"})
    return archive


def write(path, names, files, config):
    """An archive with an image of one layer: an OCI layout that is a docker-archive too, so that
    docker, podman, skopeo, kind and ctr all read it.

    `files` has content and mode by name, or where a link goes. The same content always makes the
    same archive, down to the bit: the layer is not compressed, and the only time in it is
    SOURCE_DATE_EPOCH, else 1970.
    """
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    blobs = {}

    def blob(content, media_type):
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = (content, 0o644)
        return {"mediaType": f"application/vnd.oci.image.{media_type}",
                "digest": f"sha256:{digest}", "size": len(content)}

    target = {"architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(),
                                                                          "amd64"), "os": "linux"}
    layer = blob(_tar(files, epoch), "layer.v1.tar")
    image = blob(_json({**target, "created": created, "config": config,
                        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
                        "history": [{"created": created, "created_by": "mbcas"}]}),
                 "config.v1+json")
    manifest = blob(_json({"schemaVersion": 2,
                           "mediaType": "application/vnd.oci.image.manifest.v1+json",
                           "config": image, "layers": [layer]}), "manifest.v1+json")
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
             "manifests": [{**manifest, "platform": target, "annotations": {
                 "io.containerd.image.name": _full(name),
                 "org.opencontainers.image.ref.name": name.rpartition(":")[2]}}
                           for name in names]}

    def place(descriptor):
        return "blobs/sha256/" + descriptor["digest"].removeprefix("sha256:")

    docker = [{"Config": place(image), "RepoTags": names, "Layers": [place(layer)]}]
    pathlib.Path(path).write_bytes(_tar({
        **blobs, "index.json": (_json(index), 0o644), "manifest.json": (_json(docker), 0o644),
        "oci-layout": (_json({"imageLayoutVersion": "1.0.0"}), 0o644)}, epoch))
    return manifest["digest"]


def _full(name):
    """The name as containerd keeps it: one without a registry is on Docker's."""
    first, slash, _ = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return name
    return f"docker.io/{'' if slash else 'library/'}{name}"


def _json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _tar(files, epoch):
    """Sorted, owned by root, of one time, with the directories that lead to the files."""
    entries = {str(parent): None for name in files for parent in pathlib.PurePath(name).parents
               if str(parent) != "."}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, file in sorted({**entries, **files}.items()):
            entry = tarfile.TarInfo(name)
            entry.mtime = epoch
            if file is None:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
            elif isinstance(file, str):
                entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, file, 0o777
                tar.addfile(entry)
            else:
                entry.size, entry.mode = len(file[0]), file[1]
                tar.addfile(entry, io.BytesIO(file[0]))
    return buffer.getvalue()
