#!/usr/bin/env bash
# Packs the program for a target, with completions, man pages, licences and the README: `packaging/archive.sh TARGET FOLDER`.
set -euo pipefail
target=$1
out=$(mkdir -p "$2" && cd "$2" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
name="partwise-$version-$target"
staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT
folder="$staging/$name"
mkdir -p "$folder/completions" "$folder/man"
built="${CARGO_TARGET_DIR:-target}/$target/release/partwise"
[ -f "$built" ] || built="$built.exe"
cp "$built" LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md "$folder"
for shell in bash zsh fish powershell; do
	"$built" completions "$shell" >"$folder/completions/partwise.$shell"
done
"$built" man "$folder/man"
case "$target" in
*windows*) (cd "$staging" && 7z a -bso0 "$out/$name.zip" "$name") ;;
*) tar -C "$staging" -czf "$out/$name.tar.gz" "$name" ;;
esac
cd "$out"
for file in "$name".*; do
	case "$file" in *.sha256) ;; *) { sha256sum "$file" 2>/dev/null || shasum -a 256 "$file"; } >"$file.sha256" ;; esac
done
