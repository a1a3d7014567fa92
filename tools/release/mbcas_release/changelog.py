"""What the changelog says about a version."""

import re

from .common import ROOT, Failure


def notes(version):
    text = (ROOT / "CHANGELOG.md").read_text()
    section = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not section:
        raise Failure(f"CHANGELOG.md has no section `## {version}`")
    return section[1].strip() + "\n"


def changes(version):
    """The entries of that section, each in one line; none where there is no such section."""
    try:
        text = notes(version)
    except Failure:
        return []
    entries = re.findall(r"^- (.*?)(?=^- |^#|^\s*$|\Z)", text, re.M | re.S)
    return [" ".join(entry.replace("**", "").split()) for entry in entries]
