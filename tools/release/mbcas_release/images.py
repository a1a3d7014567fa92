"""What is in each image."""

from . import common
from .bill import Bill
from .programs import program

USER = 65532
BIN = "usr/local/bin"
DOC = "usr/share/doc/mbcas"
IMAGES = {
    "mbcas-agent": {"binaries": ["mbcas-agent"], "ports": [8082]},
    # The command line is the controller too, where it is called so.
    "mbcas-controller": {"binaries": ["mbcas"], "links": {"mbcas-controller": "mbcas"},
                         "ports": [8080, 8081]},
}


def contents(name, build):
    """The files of an image: content and mode of each, or where a link goes."""
    programs = {binary: program(binary, build) for binary in IMAGES[name]["binaries"]}
    bill = Bill(name, list(programs.values()))
    return {
        **{f"{BIN}/{binary}": (found.content, 0o755) for binary, found in programs.items()},
        **{f"{BIN}/{link}": target for link, target in IMAGES[name].get("links", {}).items()},
        "etc/passwd": (f"nonroot:x:{USER}:{USER}::/:/sbin/nologin\n".encode(), 0o644),
        "etc/group": (f"nonroot:x:{USER}:\n".encode(), 0o644),
        f"{DOC}/LICENSE": ((common.ROOT / "LICENSE").read_bytes(), 0o644),
        f"{DOC}/{name}.spdx.json": (bill.spdx(), 0o644),
        f"{DOC}/notices": (bill.notices(), 0o644),
    }


def labels(name):
    return {"org.opencontainers.image.title": name,
            "org.opencontainers.image.version": common.version(),
            "org.opencontainers.image.licenses": "Apache-2.0"}


def config(name):
    return {"User": f"{USER}:{USER}", "Env": [f"PATH=/{BIN}"], "Entrypoint": [f"/{BIN}/{name}"],
            "ExposedPorts": {f"{port}/tcp": {} for port in IMAGES[name]["ports"]},
            "Labels": labels(name)}
