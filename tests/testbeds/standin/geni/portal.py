"""See rspec/pg.py: parameters come from the command line, the RSpec goes to standard output."""

import argparse

from geni.rspec import pg


class ParameterType:
    STRING, NODETYPE = "string", "nodetype"


class Context:
    def __init__(self):
        self.parser, self.request = argparse.ArgumentParser(), None

    def defineParameter(
        self, name, description, typ, defaultValue, legalValues=None, longDescription=None
    ):
        legal = legalValues and [value for value, _ in legalValues]
        self.parser.add_argument(f"--{name}", default=defaultValue, choices=legal, help=description)

    def bindParameters(self):
        return self.parser.parse_args()

    def makeRequestRSpec(self):
        self.request = pg.Request()
        return self.request

    def printRequestRSpec(self):
        print(self.request.text())


context = Context()
