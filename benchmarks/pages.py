"""What a reader's browser fetches of each page of a built site, and how soon it shows: a table.

    PYTHONPATH=src .venv/bin/python benchmarks/pages.py [SITE [HOW OFTEN]]    default: site, once

Every page is opened cold, in a context of its own, from a server that compresses as static hosts do.
What a page loads only when it is asked to (search, a machine) isn't loaded. Times are those of this
machine while it was as busy as it was; of several the least counts. Nothing here passes or fails:
tests/site/test_browser.py holds the weights.
"""

from __future__ import annotations

import functools
import gzip
import statistics
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from typing import Any

ROOT = Path(__file__).parents[1]
COMPRESSED = {".html", ".css", ".js", ".mjs", ".json", ".svg", ".xml", ".txt", ".csv"}
# Watches from before the page's first byte: the largest thing painted, and what moved unasked.
WATCH = """
window.seen = { lcp: 0, cls: 0 }
new PerformanceObserver(list => { for (const e of list.getEntries()) window.seen.lcp = e.startTime })
  .observe({ type: 'largest-contentful-paint', buffered: true })
new PerformanceObserver(list => { for (const e of list.getEntries()) if (!e.hadRecentInput) window.seen.cls += e.value })
  .observe({ type: 'layout-shift', buffered: true })
"""


@dataclass
class Seen:
    """One page, opened once: bytes as they were sent, milliseconds, and how much of the window moved."""

    page: str
    sent: int
    requests: int
    elsewhere: int
    lcp_ms: float
    shift: float


class _Compressing(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file() or path.suffix not in COMPRESSED:
            return super().do_GET()
        body = _compressed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        return None

    def log_message(self, format: str, *args: Any) -> None:
        pass


@functools.cache
def _compressed(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), 6)


@contextmanager
def serve(site: Path) -> Iterator[str]:
    """Serve a folder, compressed; the address."""
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Compressing, directory=str(site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def look(browser: Any, address: str, page: str) -> Seen:
    """Open a page as if for the first time."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.add_init_script(WATCH)
    sizes: list[int] = []
    asked: list[str] = []
    client = context.new_cdp_session(tab)
    client.send("Network.enable")
    client.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(address + page.removesuffix("index.html"), wait_until="networkidle")
    seen = tab.evaluate("window.seen")
    context.close()
    away = [url for url in asked if not url.startswith((address, "data:", "blob:"))]
    return Seen(page, int(sum(sizes)), len(asked), len(away), seen["lcp"], seen["cls"])


def kind_of(page: str) -> str:
    """Which kind of page this is: home, start, a module's front, a case, ..."""
    parts = page.split("/")
    name = parts[-2] if len(parts) > 1 else "home"
    if parts[0] != "modules":
        return parts[0] if len(parts) > 1 else "home"
    if len(parts) < 4:
        return "module's front"
    return "case" if name.startswith("case-") else name


def table(found: list[Seen]) -> str:
    """The kinds of pages, a line each, the heaviest kind first."""
    kinds: dict[str, list[Seen]] = defaultdict(list)
    for seen in found:
        kinds[kind_of(seen.page)].append(seen)
    lines = [
        "| pages | number | kB, median | kB, most | heaviest | requests | LCP, median, ms | LCP, most | most shift |",
        "|---|---:|---:|---:|---|---:|---:|---:|---:|",
    ]
    for kind, those in [
        *sorted(kinds.items(), key=lambda each: -max(one.sent for one in each[1])),
        ("all", found),
    ]:
        heaviest = max(those, key=lambda one: one.sent)
        lines.append(
            f"| {kind} | {len(those)} | {statistics.median(one.sent for one in those) / 1e3:.0f} | {heaviest.sent / 1e3:.0f} "
            f"| {heaviest.page.removesuffix('/index.html')} | {statistics.median(one.requests for one in those):.0f} "
            f"| {statistics.median(one.lcp_ms for one in those):.0f} | {max(one.lcp_ms for one in those):.0f} "
            f"| {max(one.shift for one in those):.3f} |"
        )
    return "\n".join(lines)


def main(site: Path, often: int) -> None:
    from playwright.sync_api import sync_playwright

    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("index.html"))
    if not pages:
        sys.exit(f"{site} has no pages: ./lab docs --build makes them")
    chromium = next(
        path for name in ("chromium", "chromium-browser", "google-chrome") if (path := which(name))
    )
    found = []
    with serve(site) as address, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        look(browser, address, pages[0])
        for page in pages:
            times = [look(browser, address, page) for _ in range(often)]
            best = min(times, key=lambda one: one.lcp_ms)
            best.shift = max(one.shift for one in times)
            found.append(best)
        browser.close()
    print(table(found))
    away = [seen.page for seen in found if seen.elsewhere]
    print(f"\npages that ask another host: {', '.join(away) or 'none'}")
    print(
        "most shift:",
        *(f"{s.page} {s.shift:.3f}" for s in sorted(found, key=lambda s: -s.shift)[:5]),
    )


if __name__ == "__main__":
    main(
        Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site",
        int(sys.argv[2]) if len(sys.argv) > 2 else 1,
    )
