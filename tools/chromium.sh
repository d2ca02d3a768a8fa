#!/bin/sh
# Installs Chromium if it is missing and this is possible, for the tests that open pages in a browser.
set -e
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" > /dev/null; then exit 0; fi
done
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo 'The tests of pages need Chromium: install chromium, then make test again.' >&2
    exit 1
fi
echo 'installing Chromium'
{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } > /dev/null
