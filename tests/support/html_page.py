"""Pages that are one file: well-formed, self-contained, and with what a screen reader needs."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "img", "br", "link", "hr"}


class Page(HTMLParser):
    """What a page is made of. Its elements must nest, and no attribute or id may stand twice."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def names(self) -> list[str]:
        return [tag for tag, _ in self.tags]

    @property
    def ids(self) -> list[str]:
        return [str(attrs["id"]) for _, attrs in self.tags if "id" in attrs]

    @property
    def links(self) -> list[str]:
        return [str(attrs["href"]) for tag, attrs in self.tags if tag == "a"]


def check_page(text: str) -> Page:
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(page.names)
    for _, attrs in page.tags:
        assert "src" not in attrs
        assert not any(name.startswith("on") for name in attrs)
    for fetched in ("@import", "url(", "\x1b"):
        assert fetched not in text
    assert page.names.count("table") == page.names.count("caption")
    assert all("scope" in attrs for tag, attrs in page.tags if tag == "th")
    assert {"header", "main", "footer", "h1"} <= set(page.names)
    assert ("html", {"lang": "en-GB"}) in page.tags
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    return page
