"""A link from one of our pages to another leads somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.sources import ROOT, Source, all_sources

LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)(?:\s+\"[^\"]*\")?\)")
CODE = re.compile(r"^(```|~~~).*?^\1[^\n]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6}\s+(?P<text>.+?)\s*#*$", re.MULTILINE)


def test_links_between_pages_lead_somewhere() -> None:
    pages = [source for source in all_sources() if source.path.endswith(".md")]
    problems = [problem for page in pages for problem in dead_links(page, ROOT)]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("link", ["[a](gone.md)", "[a](other.md#nowhere)", "[a](#nowhere)", "[a](/other.md)"])
def test_a_dead_link_is_found(tmp_path: Path, link: str) -> None:
    (tmp_path / "other.md").write_text("# Other page\n", encoding="utf-8")
    assert list(dead_links(Source("page.md", f"# Page\n{link}\n"), tmp_path))


@pytest.mark.parametrize(
    "link",
    ["[a](other.md)", "[a](other.md#other-page-2)", "[a](#page)", "[a](https://example.com/x)", "`[a](gone.md)`"],
)
def test_a_good_link_is_left_alone(tmp_path: Path, link: str) -> None:
    (tmp_path / "other.md").write_text("# Other `page` 2\n", encoding="utf-8")
    assert not list(dead_links(Source("page.md", f"# Page\n{link}\n"), tmp_path))


def dead_links(page: Source, root: Path) -> Iterator[str]:
    # Code is blanked, not cut, so that line numbers stay true.
    prose = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code.group()), page.text)
    for match in LINK.finditer(prose):
        target, _, anchor = match["target"].partition("#")
        line = prose.count("\n", 0, match.start()) + 1
        if re.match(r"[a-z]+:", target):
            continue
        file = root / page.path if not target else (root / page.path).parent / target
        if target and (target.startswith("/") or not file.exists()):
            yield page.problem(line, f"{target}: no such file")
        elif anchor and file.suffix == ".md":
            text = file.read_text(encoding="utf-8") if target else page.text
            if anchor not in anchors(text):
                yield page.problem(line, f"#{anchor}: no such heading")


def anchors(text: str) -> set[str]:
    """The names that headings get on the usual code hosts."""
    headings = (match["text"].lower() for match in HEADING.finditer(text))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}
