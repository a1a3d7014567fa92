"""Bills of materials (SPDX 2.3), and the notices of what they list."""

import hashlib
import json
import pathlib
import re
import urllib.parse

from . import common
from .programs import unique


class Bill:
    """What is in a package that is made of these programs."""

    def __init__(self, name, programs):
        self.name = name
        self.programs = programs
        self.linked = unique(package for program in programs for package in program.linked)
        sources = {package.source for package in self.linked}
        compiled_in = unique(package for program in programs for package in program.compiled_in)
        self.compiled_in = [package for package in compiled_in if package.source not in sources]

    def notices(self):
        return b"".join(
            f"==== {package.source} {package.version}\n".encode()
            + pathlib.Path(package.notice).read_bytes()
            for package in self.linked + self.compiled_in if pathlib.Path(package.notice).exists())

    def spdx(self):
        version = common.version()
        packages = [_entry("Image", self.name, version, licenseDeclared="Apache-2.0", checksums=[
            {"algorithm": "SHA256", "checksumValue": hashlib.sha256(program.content).hexdigest()}
            for program in self.programs])]
        relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                      "relatedSpdxElement": "SPDXRef-Image"}]
        for group, relation in ((self.linked, "STATIC_LINK"), (self.compiled_in, "DEPENDS_ON")):
            for package in group:
                packages.append(_entry(
                    _identifier(package), package.source, package.version,
                    licenseDeclared="NOASSERTION", supplier="Organization: Debian", externalRefs=[
                        {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                         "referenceLocator": purl(package)}]))
                relations.append({"spdxElementId": "SPDXRef-Image", "relationshipType": relation,
                                  "relatedSpdxElement": f"SPDXRef-{_identifier(package)}"})
        digest = hashlib.sha256(b"".join(program.content for program in self.programs)).hexdigest()
        return json.dumps({
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"{self.name}-{version}",
            "documentNamespace": f"urn:mbcas:{self.name}:{version}:{digest}",
            "creationInfo": {"created": common.timestamp(),
                             "creators": [f"Tool: mbcas-images-{version}"]},
            "packages": packages, "relationships": relations}, indent=1, sort_keys=True).encode()


def purl(package):
    """The address of a source package of the distribution."""
    source, version = (urllib.parse.quote(text, safe=":~") for text in package[:2])
    return f"pkg:deb/debian/{source}@{version}?arch=source"


def _entry(identifier, title, number, **more):
    return {"SPDXID": f"SPDXRef-{identifier}", "name": title, "versionInfo": number,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION", **more}


def _identifier(package):
    return "Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", package.source)
