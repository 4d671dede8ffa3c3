"""The course's pages."""
