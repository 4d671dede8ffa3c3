"""The kit in a reader's browser: what a page asks of it, and what stands in there for libraries that a page lacks."""
