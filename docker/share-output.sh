#!/bin/sh
# Lets the containers' user write to the output folder, whoever owns it: share-output.sh FOLDER UID:GID
# Runs as root beside the judge, for the folder only. The owner keeps it; the containers' group may write as well.
# Nobody else may: what is recorded there decides scores.
set -u
folder=$1 group=${2#*:}

# A folder that the engine made for the mount is root's. It goes to whoever owns this file, and so the project.
[ "$(stat -c %u "$folder")" != 0 ] || chown --reference="$0" "$folder"
mkdir -p "$folder/runs" "$folder/cache"
chown --reference="$folder" "$folder/runs" "$folder/cache"
# Neither follows links. New files inherit the group.
chgrp -R "$group" "$folder" && chmod -R g+rwX "$folder" && find "$folder" -type d -exec chmod g+s {} + ||
  echo "warning: group $group was not given access to all of $folder; if the run cannot write there, change its owner" >&2
