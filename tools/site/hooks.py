"""What MkDocs is told beyond mkdocs.yml: the pages that are not in docs/, links as they are right
in the repository, titles of pages for names of files, and GitHub's anchors of headings, so that one
set of files reads well in both places."""

import pathlib
import posixpath
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Files of the repository that are pages of the site, and under which name.
PAGES = {
    "README.md": "index.md",
    "charts/mbcas/README.md": "chart.md",
    **{f"{name}.md": f"project/{name.lower().replace('_', '-')}.md" for name in (
        "ARCHITECTURE", "CHANGELOG", "CODE_OF_CONDUCT", "CONTRIBUTING", "GOVERNANCE", "ROADMAP",
        "SECURITY")},
}
REPOSITORY_NAMES = {page: name for name, page in PAGES.items()}
LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
NAMED = re.compile(r"\[(?:docs/)?[\w-]+\.md\]\(([^)\s]+\.md)(#[^)\s]*)?\)")  # a file's name as text
NESTED = re.compile(r"^  (?=[-*] )", re.M)  # Python-Markdown wants four spaces
FENCE = re.compile(r"(^ *```.*?^ *```)", re.M | re.S)


def slug(heading, _separator):
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def moved(target, page, repository):
    """A link of a page, as it stands in the repository, for the site."""
    if re.match(r"[a-z]+:|#", target):
        return target
    path, _, anchor = target.partition("#")
    here = REPOSITORY_NAMES.get(page, f"docs/{page}")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
    anchor = f"#{anchor}" if anchor else ""
    if path in PAGES:
        found = PAGES[path]
    elif path.startswith("docs/") and (ROOT / path).is_file():
        found = path.removeprefix("docs/")
    else:
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{repository}/{kind}/main/{path}{anchor}"
    return posixpath.relpath(found, posixpath.dirname(page) or ".") + anchor


def titled(link, page):
    """A link whose text is the name of a file, with the title of the page instead."""
    here = REPOSITORY_NAMES.get(page, f"docs/{page}")
    target = ROOT / posixpath.normpath(posixpath.join(posixpath.dirname(here), link[1]))
    title = target.is_file() and re.search(r"^# (.+)", target.read_text(), re.M)
    return f"[{title[1]}]({link[1]}{link[2] or ''})" if title else link[0]


def expanded(nav):
    """FOLDER/* in the navigation is every page of that folder, its README first."""
    if isinstance(nav, list):
        return [expanded(item) for item in nav]
    if isinstance(nav, dict):
        return {title: expanded(item) for title, item in nav.items()}
    if not nav.endswith("/*"):
        return nav
    names = sorted(path.name for path in (ROOT / "docs" / nav[:-2]).glob("*.md"))
    return [nav[:-1] + name for name in sorted(names, key=lambda name: name != "README.md")]


def on_config(config):
    config.nav = expanded(config.nav)
    config.mdx_configs["toc"]["slugify"] = slug
    return config


def on_files(files, config):
    for name, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown, page, config, files):
    uri, repository = page.file.src_uri, config.extra["repository"]
    parts = FENCE.split(markdown)
    for number in range(0, len(parts), 2):  # the others are code
        text = NAMED.sub(lambda link: titled(link, uri), parts[number])
        text = LINK.sub(lambda link: moved(link[1], uri, repository), text)
        parts[number] = NESTED.sub("    ", text)
    return "".join(parts)
