"""Versions of the formats on disk: folders of an older version are readable, but only the current one is resumed."""

RUN_SCHEMA = "wabe-run-2"
OLDER_RUN_SCHEMAS = ("wabe-run-1",)
