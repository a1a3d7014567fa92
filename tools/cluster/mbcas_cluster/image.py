"""Images, made without an image builder; and the one a node starts with: pause for pod sandboxes
and the small workloads of samples and tests in one."""

import gzip
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
TYPE = "application/vnd.oci.image"
MANIFEST, INDEX = f"{TYPE}.manifest.v1+json", f"{TYPE}.index.v1+json"
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
    layout = Layout()
    target = {"architecture": machine(), "os": "linux"}
    manifest, image, layer = layout.image(files, config, target)
    index = [{**manifest, "platform": target, "annotations": {
        "io.containerd.image.name": _full(name),
        "org.opencontainers.image.ref.name": name.rpartition(":")[2]}} for name in names]
    docker = [{"Config": _place(image), "RepoTags": names, "Layers": [_place(layer)]}]
    layout.save(path, index, {"manifest.json": docker})
    return manifest["digest"]


def write_index(path, tag, files, config, annotations):
    """An OCI archive for a registry, with an index that lists an image for each architecture.

    `files` has by architecture what write() takes. Layers are compressed, and the same content
    makes the same archive here, too. Returns the digest of the index.
    """
    layout = Layout()
    manifests = []
    for architecture in sorted(files):
        target = {"architecture": architecture, "os": "linux"}
        manifest, *_ = layout.image(files[architecture], config, target, compressed=True)
        manifests.append({**manifest, "platform": target})
    index = layout.add(_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests,
                              "annotations": annotations}), INDEX)
    layout.save(path, [{**index, "annotations": {"org.opencontainers.image.ref.name": tag}}])
    return index["digest"]


def write_artifact(path, tag, config, content, annotations):
    """An OCI archive with one file for a registry that is no image. `config` and `content` are each
    the bytes and their media type. Returns the digest of the manifest."""
    layout = Layout()
    manifest = layout.add(_json({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": layout.add(*config),
        "layers": [layout.add(*content)], "annotations": annotations}), MANIFEST)
    layout.save(path, [{**manifest, "annotations": {"org.opencontainers.image.ref.name": tag}}])
    return manifest["digest"]


def machine():
    """The architecture of this machine, as images call it."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "amd64")


class Layout:
    """What an OCI layout holds."""

    def __init__(self):
        self.blobs = {}
        self.epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))

    def add(self, content, media_type):
        """Returns the descriptor of a blob."""
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[f"blobs/sha256/{digest}"] = (content, 0o644)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def image(self, files, config, target, compressed=False):
        """Returns the descriptors of an image, of its configuration and of its one layer."""
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.epoch))
        tar = write_tar(files, self.epoch)
        if compressed:
            layer = self.add(gzip.compress(tar, mtime=self.epoch), f"{TYPE}.layer.v1.tar+gzip")
        else:
            layer = self.add(tar, f"{TYPE}.layer.v1.tar")
        image = self.add(_json({
            **target, "created": created, "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}"]},
            "history": [{"created": created, "created_by": "mbcas"}]}), f"{TYPE}.config.v1+json")
        manifest = self.add(_json({"schemaVersion": 2, "mediaType": MANIFEST, "config": image,
                                   "layers": [layer]}), MANIFEST)
        return manifest, image, layer

    def save(self, path, manifests, more=None):
        documents = {"index.json": {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests},
                     "oci-layout": {"imageLayoutVersion": "1.0.0"}, **(more or {})}
        pathlib.Path(path).write_bytes(write_tar({
            **self.blobs, **{name: (_json(document), 0o644)
                             for name, document in documents.items()}}, self.epoch))


def _place(descriptor):
    return "blobs/sha256/" + descriptor["digest"].removeprefix("sha256:")


def _full(name):
    """The name as containerd keeps it: one without a registry is on Docker's."""
    first, slash, _ = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return name
    return f"docker.io/{'' if slash else 'library/'}{name}"


def _json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def write_tar(files, epoch):
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
