"""The checker: is a run what it was meant to be?"""
