"""The outline of a page: its headings, tables, forms and links, and problems for readers."""

from __future__ import annotations

from html.parser import HTMLParser


class Outline(HTMLParser):
    """Reads a page."""

    def __init__(self, response):
        super().__init__()
        self.headings, self.headers = [], []
        self.buttons, self.posts, self.links = [], [], []
        self.ids = []
        self._words = None
        self.feed(response.content.decode())
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.headings.append(int(tag[1]))
        if tag == "th":
            self.headers.append(given.get("scope"))
        if tag == "form" and given.get("method", "").lower() == "post":
            self.posts.append(given.get("action", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "button" or (tag == "a" and "button" in (given.get("class") or "").split()):
            self._words = []

    def handle_data(self, data):
        if self._words is not None:
            self._words.append(data)

    def handle_endtag(self, tag):
        if tag in ("a", "button") and self._words is not None:
            self.buttons.append(" ".join("".join(self._words).split()))
            self._words = None

    @property
    def own_posts(self):
        """Where its forms post to, but for those that every page of the admin has."""
        return [action for action in self.posts if action not in ("/admin/logout/", "/i18n/setlang/")]


def stumbles(response):
    """What is amiss with headings, tables and ids."""
    outline = Outline(response)
    found = []
    if outline.headings.count(1) != 1:
        found.append(f"{outline.headings.count(1)} first headings")
    for before, after in zip(outline.headings, outline.headings[1:], strict=False):
        if after > before + 1:
            found.append(f"a heading {after} below a heading {before}")
    found += [f"a header cell with scope {scope}" for scope in outline.headers if scope not in ("col", "row")]
    found += [f"two ids {one}" for one in sorted({one for one in outline.ids if outline.ids.count(one) > 1})]
    return found
