#!/bin/sh
# Rebuilds echarts.min.js and the licences beside it from the exact versions in package-lock.json. Needs Node and npm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$here/entry.js" "$work"
cd "$work"
npm ci --ignore-scripts --no-audit --no-fund
cp node_modules/echarts/LICENSE node_modules/echarts/NOTICE node_modules/echarts/licenses/LICENSE-d3 "$here"
cp node_modules/zrender/LICENSE "$here/LICENSE-zrender"
cp node_modules/tslib/LICENSE.txt "$here/LICENSE-tslib"
npx esbuild entry.js --bundle --minify --format=iife --global-name=echarts --target=es2019 --charset=ascii \
    --define:process.env.NODE_ENV='"production"' --legal-comments=none --outfile=bundle.js
# A report holds the library, and so its notices.
version=$(node -p 'require("echarts/package.json").version')
{
    echo "/* Apache ECharts $version, Apache License 2.0 (http://www.apache.org/licenses/LICENSE-2.0); built of its parts."
    cat "$here/NOTICE"
    for part in d3 zrender tslib; do
        printf '\n\nWith parts of %s:\n' "$part"
        cat "$here/LICENSE-$part"
    done
    echo "*/"
    cat bundle.js
} | tr -d '\r' >"$here/echarts.min.js"
