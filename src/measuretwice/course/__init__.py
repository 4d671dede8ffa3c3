"""What a student does in the course, as functions that return values: play a case, check, note, start, report.

`cli` words these values for a terminal, `in_page` turns them into a page's JSON. Nothing here prints or asks.
"""
