"""`python docs/_check_site.py site`: fails if a page has a dead link, or loads anything from another host."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("link", "href"), ("iframe", "src"), ("img", "src"), ("script", "src"), ("source", "src"), ("video", "src")}
DROPPED = {"canonical", "search", "index", "next", "prev"}  # links of `<head>` that load nothing


class Page(HTMLParser):
    """What a page loads, where it links to, and the anchors that it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads, self.links, self.anchors = set[str](), set[str](), {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if found.get("rel") not in DROPPED:
            self.loads |= {found[name] for each, name in LOADED if each == tag and name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        self.anchors |= {found[name] for name in ("id", "name") if name in found}


def problems(site: Path) -> list[str]:
    """One line for each link that leads nowhere and each resource of another host."""
    root = site.resolve()
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    found = [] if pages else [f"{site}: no pages"]
    for path, page in pages.items():
        found += [f"{path}: loads {url}" for url in page.loads if urlsplit(url).netloc]
        for url in page.links | page.loads:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                found.append(f"{path}: {url} is not there")
            elif path.parts[len(root.parts)] == "_modules":
                continue  # links back from source code: Sphinx knows one public module for each file, not two
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{path}: {url} has no such anchor")
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        found += [f"{path}: loads from another host" for mark in ('url("http', "url(http", "url(//") if mark in text]
    return found


if __name__ == "__main__":
    found = problems(Path(sys.argv[1]))
    print("\n".join(found) or f"no dead links in {sys.argv[1]}, and nothing is loaded from another host")
    sys.exit(bool(found))
