#!/usr/bin/env bash
# Checks that the library compiles with each set of features, and has few dependencies without default features.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
most=${1:-73}
crates=$(cargo tree --locked -p partwise --no-default-features -e normal,build --prefix none --target "$(rustc -vV | sed -n 's/^host: //p')" |
	sed 's/ (\*)$//; s/ (proc-macro)$//' | sort -u | wc -l)
echo "without default features: $crates crates"
[ "$crates" -le "$most" ] || { echo "more than $most" >&2; exit 1; }
cargo test --locked --quiet --release -p partwise-core --no-default-features --lib left_out
for features in "" io images h5ad ndarray faer sprs indicatif simulate federation "io,images,h5ad,ndarray,faer,sprs,indicatif,federation"; do
	echo "features: $features"
	cargo check --locked --quiet -p partwise --lib --no-default-features --features "$features"
done
