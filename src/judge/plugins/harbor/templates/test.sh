#!/bin/bash
# Hands over what the judge has decided. Without a reward the attempt was not scored: verdict.json says why, and whose
# fault it was.
set -eu
verdict=/app/.output/verdict
mkdir -p /logs/verifier
[ ! -f "$verdict/verdict.json" ] || cp "$verdict/verdict.json" /logs/verifier/verdict.json
[ ! -f "$verdict/reward.json" ] || cp "$verdict/reward.json" /logs/verifier/reward.json
