"""What a release has besides images: archives of the command line, the chart, a manifest in one
file, and an index entry for krew. Each is the same to the bit for the same commit."""

import gzip
import json
import os
import pathlib
import re
import tempfile

from mbcas_cluster import image

from . import common
from .common import ROOT, Failure, output

CHART = ROOT / "charts" / "mbcas"


def compressed_tar(files):
    return gzip.compress(image.write_tar(files, common.epoch()), mtime=common.epoch())


def chart_fields():
    """The fields of Chart.yaml that are a word or a line."""
    found = re.findall(r'^(\w+): "?([^"\[\n]+?)"?(?:  #.*)?$', (CHART / "Chart.yaml").read_text(),
                       re.M)
    return dict(found)


# ---- the command line

def command_line(program, bill):
    """An archive that krew takes, too; with the names by which kubectl finds the program."""
    files = {
        "mbcas": (program.content, 0o755),
        "kubectl-mbcas": "mbcas",
        "kubectl_complete-mbcas": "mbcas",
        "LICENSE": ((ROOT / "LICENSE").read_bytes(), 0o644),
        "notices": (bill.notices(), 0o644),
        "mbcas.spdx.json": (bill.spdx(), 0o644),
    }
    return compressed_tar(files)


def krew_manifest(home, version, archives):
    """`archives` has name and digest of the command line's archive by architecture."""
    platforms = "".join(f"""\
  - selector:
      matchLabels:
        os: linux
        arch: {architecture}
    uri: {home}/releases/download/v{version}/{name}
    sha256: {digest}
    bin: mbcas
    files:
    - {{from: mbcas, to: .}}
    - {{from: LICENSE, to: .}}
""" for architecture, (name, digest) in sorted(archives.items()))
    return f"""\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: mbcas
spec:
  version: v{version}
  homepage: {home}
  shortDescription: CPU limits that follow what pods need
  description: |
    Shows and controls MBCAS, which allocates CPU on Kubernetes by a market and by what the kernel
    says: which limit each pod has and why, how to pause it, and how to take everything back.
    Commands that change the cluster need MBCAS installed in it.
  platforms:
{platforms}"""


# ---- where pods may run

def placement(architectures):
    """The part of a pod's spec that keeps it off nodes for which there is no image; the chart has
    the value image.architectures for it."""
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/arch", "operator": "In", "values": architectures}]}]}}}}


# ---- the chart

def hub_annotations(images, architectures, changes):
    """What Artifact Hub shows of a chart and only a release knows: its images (name, reference) and
    what has changed. As lines for the annotations of Chart.yaml."""
    def block(name, entries):
        return f"  artifacthub.io/{name}: |\n" + "".join(
            f"    - {json.dumps(entry, ensure_ascii=False)}\n" for entry in entries)

    platforms = [f"linux/{architecture}" for architecture in architectures]
    text = block("images", [{"name": name, "image": reference, "platforms": platforms}
                            for name, reference in images])
    if changes:
        text += block("changes", changes)
    return text.encode()


def chart(registry, architectures, annotations):
    """The chart as `helm package` packs it, with the registry and the architectures of the
    release's images, and with lines for its annotations."""
    ignored = (CHART / ".helmignore").read_text().split()
    files = {}
    for directory, _, names in os.walk(CHART, followlinks=True):
        for name in names:
            path = pathlib.Path(directory) / name
            relative = str(path.relative_to(CHART))
            if not any(relative == rule or relative.startswith(f"{rule}/") for rule in ignored):
                files[f"mbcas/{relative}"] = (path.read_bytes(), 0o644)
    metadata, _ = files["mbcas/Chart.yaml"]
    if not re.search(rb"^annotations:\n(?:  .*\n)+\Z", metadata, re.M):
        raise Failure("charts/mbcas/Chart.yaml does not end with its annotations")
    files["mbcas/Chart.yaml"] = (metadata + annotations, 0o644)
    values, _ = files["mbcas/values.yaml"]
    for name, default, own in (("registry", '""', registry),
                               ("architectures", "[]", json.dumps(architectures))):
        line = f"\n  {name}: {default}\n".encode()
        if values.count(line) != 1:
            raise Failure(f"charts/mbcas/values.yaml has no line `  {name}: {default}`, or several")
        values = values.replace(line, f"\n  {name}: {own}\n".encode())
    files["mbcas/values.yaml"] = (values, 0o644)
    return compressed_tar(files)


def write_chart_artifact(path, chart_archive, annotations):
    """The same as an OCI artifact, as `helm push` makes it. Returns its digest."""
    fields = chart_fields()
    config = {name: fields[name] for name in ("apiVersion", "name", "version", "appVersion", "type",
                                              "description", "kubeVersion", "home", "icon")}
    return image.write_artifact(
        path, fields["version"],
        (json.dumps(config, sort_keys=True).encode(), "application/vnd.cncf.helm.config.v1+json"),
        (chart_archive, "application/vnd.cncf.helm.chart.content.v1.tar+gzip"),
        {**annotations, "org.opencontainers.image.title": "mbcas",
         "org.opencontainers.image.description": fields["description"]})


# ---- one file for kubectl

def install_manifest(kubectl, images, architectures, version, commit):
    """What `kubectl apply -k config` installs, with images (name, reference, digest) by digest, on
    nodes for which there are images."""
    patch = {"apiVersion": "apps/v1", "kind": "any", "metadata": {"name": "any"},
             "spec": {"template": {"spec": placement(architectures)}}}
    with tempfile.TemporaryDirectory(prefix="mbcas-release-") as directory:
        entries = "".join(
            f"- {{name: {name}, newName: {reference}, newTag: {version}, digest: {digest}}}\n"
            for name, reference, digest in images)
        config = os.path.relpath(ROOT / "config", pathlib.Path(directory).resolve())
        (pathlib.Path(directory) / "kustomization.yaml").write_text(
            f"resources:\n- {config}\nimages:\n{entries}patches:\n"
            f"- target: {{kind: (DaemonSet|Deployment)}}\n  patch: '{json.dumps(patch)}'\n")
        objects = output(kubectl, "kustomize", directory)
    for _, reference, digest in images:
        if f"{reference}:{version}@{digest}" not in objects:
            raise Failure(f"kubectl kustomize did not put in {reference} by its digest")
    header = f"# MBCAS {version}, commit {commit}: kubectl apply -f install.yaml\n"
    return (header + objects).encode()
