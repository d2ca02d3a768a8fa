#!/usr/bin/env bash
# Three hospitals and a coordinator as separate processes on this machine, over TLS: creates data and keys, runs the federation,
# and compares its result with what each hospital finds alone.
#
#   examples/hospitals/run.sh [FOLDER]     PARTWISE=/path/to/partwise to use another program than the one in PATH
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
partwise=${PARTWISE:-partwise}
folder=${1:-$(mktemp -d -t hospitals-XXXXXX)}
port=${PORT:-7400}
mkdir -p "$folder"
[ ! -e "$folder/trial" ] || { echo "$folder/trial already exists; choose another folder" >&2; exit 2; }

echo "== data: three hospitals, the same 60 diagnoses, different patients (synthetic)"
python3 "$here/make_data.py" "$folder"

echo "== keys: all at once, which is for trials"
"$partwise" provision --demo --parties 3 --protocol syn-sd --rank 5 --rounds 60 --address "127.0.0.1:$port" --out "$folder/trial"

echo "== run: a coordinator and three parties"
"$partwise" coordinator run "$folder/trial/coordinator/federation.toml" --out "$folder/coordinator" \
    --status-address none > "$folder/coordinator.log" 2>&1 &
processes=($!)
trap 'kill "${processes[@]}" 2> /dev/null || true' EXIT
for party in 1 2 3; do
    "$partwise" party join "$folder/trial/party-$party/party.toml" --data "$folder/hospital-$party.csv" \
        --out "$folder/hospital-$party" > "$folder/party-$party.log" 2>&1 &
    processes+=($!)
done
for process in "${processes[@]}"; do
    wait "$process" || { cat "$folder"/*.log >&2; exit 1; }
done
trap - EXIT
grep -h "relative error" "$folder"/party-*.log | head -1

echo "== each hospital alone, with the same number of components"
for party in 1 2 3; do
    "$partwise" factorize "$folder/hospital-$party.csv" --rank 5 --quiet --force --out "$folder/alone-$party"
done
python3 "$here/compare.py" "$folder"

echo "== what left hospital 1, by its ledger"
"$partwise" audit "$folder/trial/party-1/state"
echo "all of it is in $folder"
