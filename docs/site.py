"""What MkDocs has to be told of our documents, which are written to be read in the repository.

Pages beside `docs/` become pages of the site, and links between them follow. Links to files that the site does not have
(code, scenarios) become plain names. Executed notebooks become pages. The index leads to pages that the navigation leaves out; a test keeps it complete.
"""

import json
import os
import posixpath
import re
import tomllib
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File
from mkdocs.structure.nav import Link

ROOT = Path(__file__).resolve().parent.parent
# Documents beside docs/: from the root of the repository, and in the site.
BESIDE = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "python/README.md": "python.md",
    # The site begins with the index of the documents.
    "README.md": "README.md",
}
# The page with the simulator in it, where `make browser` could build it.
PLAY = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "browser" / "play.html"
LINK = re.compile(r"(!?)\[([^\]\[]+)\]\(([^)\s]+)\)")


def on_files(files, config):
    for source, name in BESIDE.items():
        if name != "README.md":
            text = (ROOT / source).read_text(encoding="utf-8")
            files.append(File.generated(config, name, content=text))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=notebook(path)))
    files.append(File.generated(config, "rust.md", content=crates()))
    if PLAY.exists():
        files.append(File.generated(config, "play.html", abs_src_path=str(PLAY)))
    return files


def on_nav(nav, config, files):
    if files.get_file_from_path("play.html"):
        nav.items.insert(1, Link("Watch packets", "play.html"))
    return nav


def notebook(path):
    """An executed notebook as a page, with what its cells printed and drew."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                picture = "".join(data["image/png"].split())
                parts.append(
                    f'<img class="output" alt="What the cell above draws" src="data:image/png;base64,{picture}">'
                )
            else:
                text = "".join(output.get("text") or data["text/plain"]).rstrip("\n")
                parts.append(f"```text\n{text}\n```")
    parts.append(f"[Download this notebook]({path.name}){{ download }}")
    return "\n\n".join(parts) + "\n"


def crates():
    """A page that leads to the reference of each crate, which `make docs` puts beside the site."""
    lines = [
        "# Reference of the crates",
        "",
        "What rustdoc makes of the code, as `make docs` has built it.",
        "",
        "| Crate | What it is |",
        "|---|---|",
    ]
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        package = tomllib.loads(manifest.read_text(encoding="utf-8"))["package"]
        folder = package["name"].replace("-", "_")
        lines.append(
            f'| <a href="rust/{folder}/index.html"><code>{package["name"]}</code></a> | {package["description"]} |'
        )
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown, page, config, files):
    here = page.file.src_uri
    # Where the document is in the repository.
    source = next((s for s, name in BESIDE.items() if name == here and s != "README.md"), f"docs/{here}")

    def link(match):
        picture, text, target = match.groups()
        path, hash_, anchor = target.partition("#")
        if "://" in target or not path:
            return match.group(0)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        name = BESIDE.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if name and name.endswith(".ipynb") and here != name.replace(".ipynb", ".md"):
            name = name.replace(".ipynb", ".md")
        if name and files.get_file_from_path(name):
            return f"{picture}[{text}]({posixpath.relpath(name, posixpath.dirname(here) or '.')}{hash_}{anchor})"
        if not (ROOT / path).exists():
            raise PluginError(f"{source}: a link to {target}, which does not exist")
        return text

    # Not in blocks of code.
    parts = re.split(r"(^```.*?^```)", markdown, flags=re.M | re.S)
    return "".join(part if i % 2 else LINK.sub(link, part) for i, part in enumerate(parts))
