"""Measure Twice: reproduce published TCP results, and find out why the first try is wrong."""

__version__ = "0.1.0"
