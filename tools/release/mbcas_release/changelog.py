"""What the changelog says of a version."""

import re

from .common import ROOT, Failure


def notes(version):
    text = (ROOT / "CHANGELOG.md").read_text()
    section = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not section:
        raise Failure(f"CHANGELOG.md has no section `## {version}`")
    return section[1].strip() + "\n"
