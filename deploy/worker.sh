#!/bin/sh
# Plays all shards of a run, but those that another worker plays or has finished; any number of workers may share a folder.
#   WABE_RUN_ID=run-1 WABE_SHARDS=20 WABE_OUTPUT_DIR=/runs worker.sh SCENARIO.toml [options of wabe run]
# Its exit code is the highest of its shards': 0 if all were finished, 1 if tasks were lost, 2 if a setting is wrong.
set -u
: "${WABE_RUN_ID:?}" "${WABE_SHARDS:?}" "${WABE_OUTPUT_DIR:?}"

child=
claims="$WABE_OUTPUT_DIR/claims/$WABE_RUN_ID"
mkdir -p "$claims" || exit 2
trap '[ -z "$child" ] || { kill -TERM "$child"; wait "$child"; }; exit 130' TERM INT
worst=0
shard=0
while [ "$shard" -lt "$WABE_SHARDS" ]; do
  # The kernel releases the lock when the worker ends, no matter how.
  exec 9>>"$claims/$shard"
  if flock --nonblock 9 && ! [ -e "$claims/$shard.done" ]; then
    WABE_SHARD=$shard wabe run "$@" --shards auto 9>&- &
    child=$!
    wait "$child"
    code=$?
    [ "$code" = 0 ] && touch "$claims/$shard.done"
    [ "$code" -gt "$worst" ] && worst=$code
    # All other shards would end in the same way.
    [ "$code" = 2 ] && exit 2
  fi
  exec 9>&-
  shard=$((shard + 1))
done
exit "$worst"
