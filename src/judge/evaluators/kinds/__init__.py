"""The kinds of checks built in, one file each: the record of its keys, and its evaluation.

Each file's `KIND` is an entry point of `wabe.checks`, as in other packages.
"""
