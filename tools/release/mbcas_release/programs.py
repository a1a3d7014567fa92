"""The binaries of a build, and which packages of the distribution are in them."""

import collections
import dataclasses
import functools
import os
import pathlib
import re
import struct
import subprocess
import tempfile

from .common import ROOT, Failure, output

Package = collections.namedtuple("Package", "source version notice")


@dataclasses.dataclass(frozen=True)
class Build:
    """Where the binaries of one architecture are."""
    architecture: str  # as images call it
    tree: pathlib.Path
    binaries: pathlib.Path
    strip: str = "strip"

    def cached(self, variable):
        """What CMake knows; empty where it knows nothing."""
        found = re.search(rf"^{variable}:\w+=(.*)$", (self.tree / "CMakeCache.txt").read_text(),
                          re.M)
        return found[1] if found else ""

    @functools.cached_property
    def sysroot(self):
        """By file, the package, source and version of what scripts/sysroot has fetched."""
        root = self.cached("MBCAS_SYSROOT")
        if not root:
            return {}
        lines = (pathlib.Path(root) / "packages").read_text().splitlines()
        return {os.path.realpath(root + path): (root, *words)
                for path, *words in (line.rsplit(" ", 3) for line in lines)}


@dataclasses.dataclass(frozen=True)
class Program:
    content: bytes  # without names that only a debugger wants
    linked: frozenset
    compiled_in: frozenset  # from headers


@functools.cache
def program(name, build):
    path = build.binaries / name
    if not path.exists():
        raise Failure(f"{path} is missing: make build")
    if not is_static(path):
        raise Failure(f"{path} needs shared libraries; scripts/static-libs says why it was not "
                      "linked statically")
    archives, headers = linked_files(name, build)
    return Program(stripped(path, build), frozenset(owners(archives, build)),
                   frozenset(owners(headers, build)))


def is_static(path):
    """No program header asks for an interpreter, which is what loads shared libraries."""
    data = path.read_bytes()
    start, size, number = struct.unpack_from("<32xQ14xHH", data)[:3]
    return not any(struct.unpack_from("<I", data, start + i * size)[0] == 3 for i in range(number))


def stripped(path, build):
    with tempfile.NamedTemporaryFile() as file:
        output(build.strip, "-o", file.name, path)
        return pathlib.Path(file.name).read_bytes()


def linked_files(target, build):
    """Archives that the binary has parts of, and headers that were compiled into it."""
    link = output("ninja", "-t", "commands", target, cwd=build.tree).splitlines()[-1]
    command = re.sub(r"^: && (.*?) && .*$", r"\1", link)
    command = re.sub(r" -o (?:\"[^\"]*\"|\S+)", " -o /dev/null -Wl,--trace", command)
    traced = output("sh", "-c", command, cwd=build.tree)
    archives = {*re.findall(r"(/\S+\.a)\(", traced), *re.findall(r"^(/\S+\.[ao])$", traced, re.M)}
    objects = [name for name in output("ninja", "-t", "inputs", target, cwd=build.tree).split()
               if name.endswith(".o")]
    root = re.escape(build.cached("MBCAS_SYSROOT"))
    headers = set(re.findall(rf"^ +((?:{root})?/usr/\S+)",
                             output("ninja", "-t", "deps", *objects, cwd=build.tree), re.M))
    return archives, headers


def tools(build):
    """The compiler and the linker."""
    return [path for path in map(build.cached, ("CMAKE_CXX_COMPILER", "CMAKE_LINKER"))
            if path.startswith("/")]


def own_static_libraries():
    """What scripts/static-libs makes: by file name, the package with the headers of the source."""
    script = (ROOT / "scripts" / "static-libs").read_text()
    table = re.findall(r'^  "(\S+) \S+ (\S+)"$', script, re.M)
    return {f"lib{library}.a": headers for library, headers in table}


def owners(files, build):
    """The packages of the distribution that these files come from."""
    made_here = own_static_libraries()
    fetched = {words[0]: Package(*words[1:], f"{root}/usr/share/doc/{words[0]}/copyright")
               for root, *words in build.sysroot.values()}
    names, paths, found = set(), [], set()
    for file in files:
        real = os.path.realpath(file)
        if real in build.sysroot:
            found.add(fetched[build.sysroot[real][1]])
        elif real.startswith("/usr/"):
            paths.append(real)
        elif not real.startswith(str(ROOT)):
            name = made_here[os.path.basename(real)]
            if name in fetched:
                found.add(fetched[name])
            else:
                names.add(name)
    if paths:
        listed = subprocess.run(["dpkg-query", "-S", *sorted(set(paths))], capture_output=True,
                                text=True).stdout
        names.update(line.split(": ")[0].split(",")[0] for line in listed.splitlines())
    for name in names:
        source, version = output("dpkg-query", "-W", "-f=${source:Package} ${source:Version}",
                                 name).split()
        notice = pathlib.Path("/usr/share/doc") / name.split(":")[0] / "copyright"
        found.add(Package(source, version, str(notice)))
    return found


def unique(packages):
    """One of each source package."""
    return sorted({package.source: package for package in sorted(packages)}.values())
