"""The kinds of checks that are built in, one file each: the record of its keys, and its evaluation.

Each file's `KIND` is an entry point of `wabe.checks`, as in other packages.
"""
