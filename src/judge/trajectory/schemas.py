"""Schema versions of recorded files: what this version writes, and which older ones it reads.

An older run is read only: it can be shown, scored and verified, and is never resumed or rewritten. A version in neither
list is an error wherever it is met.
"""

RUN_SCHEMA = "wabe-run-2"
OLDER_RUN_SCHEMAS = ("wabe-run-1",)
RESULT_SCHEMA = "wabe-2"
OLDER_RESULT_SCHEMAS = ("wabe-1",)
