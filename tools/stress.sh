#!/usr/bin/env bash
# Repeats the tests of one test executable while other processes keep all cores busy. A repeat that fails, or takes longer
# than LIMIT seconds, ends everything with its output. Used as a runner of `cargo test` by `make stress`.
#
#   tools/stress.sh EXECUTABLE [FILTER...]     REPEATS=500 times, JOBS=8 at a time
set -euo pipefail
executable=$1
shift
export REPEATS=${REPEATS:-500} LIMIT=${LIMIT:-300}
jobs=${JOBS:-8}
cores=$(getconf _NPROCESSORS_ONLN)
folder=$(mktemp -d -t stress-XXXXXX)
loads=()
trap 'kill "${loads[@]}" 2> /dev/null || true; rm -rf "$folder"' EXIT
for _ in $(seq "$cores"); do
    (while :; do :; done) &
    loads+=($!)
done

one() {
    local said=$1/$2
    shift 2
    timeout --kill-after 5 "$LIMIT" "$@" > "$said" 2>&1 || {
        echo "repeat ${said##*/} failed with $? (124: not within $LIMIT s):" >&2
        tail -n 40 "$said" >&2
        return 255
    }
    rm "$said"
}
export -f one
begin=$SECONDS
seq "$REPEATS" | xargs -P "$jobs" -I '{}' bash -c 'one "$@"' one "$folder" '{}' "$executable" "$@"
echo "$REPEATS repeats under load passed in $((SECONDS - begin)) s"
