"""Drawings for pages, as SVG in the page itself: it takes the page's colours and its text can be read out."""
