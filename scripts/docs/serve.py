"""Show this site from this folder: python3 serve.py, then open the address that it prints. Ctrl-C ends it.

A browser lets a page that it opened as a file start no other program, not even one of its own folder. So pages can't
run trials then; served by this, to this machine alone, they can.
"""

import functools
import http.server
import os
import sys


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


# Some systems' tables say otherwise, and a browser starts no module of another type.
Quiet.extensions_map.update({".mjs": "text/javascript", ".js": "text/javascript"})


def main() -> None:
    port = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 8000
    handler = functools.partial(Quiet, directory=os.path.dirname(os.path.abspath(__file__)))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError:  # somebody else has it: then any that is free
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    print(f"http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    main()
