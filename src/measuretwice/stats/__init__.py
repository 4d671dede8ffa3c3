"""Statistics, pure: intervals, and tests of two samples."""
