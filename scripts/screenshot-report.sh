#!/usr/bin/env bash
# Looks at a report as a browser shows it: REPORT-400.png and REPORT-1400.png (pixels wide) are
# written, and it is an error where the page asks for anything outside its file or scrolls sideways.
#
# usage: scripts/screenshot-report.sh report.html [FOLDER]
#
# FOLDER is where the pictures go: beside the report unless given. WIDTHS="320 900" takes other
# widths. Needs python3, and Chromium or Chrome under one of the usual names or in CHROMIUM
# (Debian: apt-get install chromium).
set -euo pipefail

if [ $# -lt 1 ] || [ $# -gt 2 ] || [ ! -f "$1" ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
report=$(realpath "$1")
folder=$(realpath "${2:-$(dirname "$report")}")
name=$(basename "${report%.html}")

chromium=${CHROMIUM:-}
for candidate in chromium chromium-browser google-chrome google-chrome-stable; do
    [ -n "$chromium" ] || chromium=$(command -v "$candidate" || true)
done
if [ -z "$chromium" ]; then
    echo "no Chromium: install it or name it in CHROMIUM" >&2
    exit 2
fi
command -v python3 >/dev/null || { echo "python3 is needed" >&2; exit 2; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
fail() {
    echo "error: $*" >&2
    failed=1
}

browse() {
    # A name that can't be looked up: what the page asks for fails, and is in the log.
    timeout 120 "$chromium" --headless=new --no-sandbox --disable-gpu --hide-scrollbars \
        --no-first-run --disable-background-networking --disable-component-update \
        --disable-sync --disable-extensions --host-resolver-rules='MAP * ~NOTFOUND' \
        --user-data-dir="$scratch/profile" --allow-file-access-from-files \
        --force-color-profile=srgb "$@" 2>"$scratch/stderr" \
        || { cat "$scratch/stderr" >&2; return 1; }
}

# 1. What the file names: links to other sections and data are fine.
python3 - "$report" >"$scratch/named" <<'PYTHON'
import re, sys
from html.parser import HTMLParser

FETCHING = {"src", "srcset", "href", "xlink:href", "poster", "data", "action", "background", "ping"}
INSIDE = ("#", "data:")

class Reader(HTMLParser):
    style = False
    def handle_starttag(self, tag, attributes):
        self.style = tag == "style"
        if tag in ("script", "iframe", "object", "embed", "base"):
            print(f"<{tag}>")
        for name, value in attributes:
            value = value or ""
            if name in FETCHING and not value.startswith(INSIDE):
                print(f"<{tag} {name}={value!r}>")
            if name == "style":
                self.css(value)
    def handle_endtag(self, tag):
        self.style = False
    def handle_data(self, text):
        if self.style:
            self.css(text)
    def css(self, text):
        for target in re.findall(r"@import[^;]*|url\(\s*['\"]?(?!#|data:)[^)]*\)", text):
            print(f"style: {target}")

Reader().feed(open(sys.argv[1], encoding="utf-8").read())
PYTHON
while read -r line; do
    fail "the page asks for $line"
done <"$scratch/named"

# 2. What the browser asks for, with the page's own policy taken off, and how wide the page is.
for width in ${WIDTHS:-400 1400}; do
    python3 - "$report" "$width" "$scratch" <<'PYTHON'
import re, sys
report, width, scratch = sys.argv[1:]
page = open(report, encoding="utf-8").read()
page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
page += """<script>addEventListener("load", () => {
    const page = document.scrollingElement;
    parent.document.title = [innerWidth, page.scrollWidth, page.scrollHeight].join(" ");
})</script>"""
open(f"{scratch}/page.html", "w", encoding="utf-8").write(page)
# The page of a window is never narrower than 500 pixels, that of a frame is.
open(f"{scratch}/frame.html", "w", encoding="utf-8").write(
    '<!doctype html><title></title><body style="margin:0">'
    f'<iframe src="page.html" style="border:0;width:{width}px;height:900px"></iframe>')
PYTHON
    browse --window-size=1500,1000 --virtual-time-budget=10000 --timeout=20000 \
        --log-net-log="$scratch/net.json" --dump-dom "file://$scratch/frame.html" >"$scratch/dom"
    read -r inner wide high < <(sed -n 's/.*<title>\([0-9 ]*\)<\/title>.*/\1/p' "$scratch/dom") \
        || { fail "the page could not be measured at $width pixels"; continue; }
    echo "$width: the page is $wide x $high pixels"
    [ "$inner" = "$width" ] || fail "the frame is $inner pixels wide instead of $width"
    [ "$wide" -le "$width" ] || fail "at $width pixels the page scrolls sideways: it is $wide wide"
    python3 - "$scratch/net.json" >"$scratch/asked" <<'PYTHON'
import re, sys
log = open(sys.argv[1], encoding="utf-8", errors="replace").read()
# The browser's own errands are no requests of the page.
own = re.compile(
    r"//(accounts\.google|clients\d?\.google|update\.googleapis|safebrowsing\.googleapis"
    r"|optimizationguide-pa\.googleapis|content-autofill\.googleapis|edgedl\.me\.gvt1)\.com[:/]"
)
urls = set(re.findall(r'"url":"((?:https?|wss?|ftp):[^"]*)"', log))
print("\n".join(sorted(url for url in urls if not own.search(url))))
PYTHON
    while read -r url; do
        [ -z "$url" ] || fail "at $width pixels the page asked for $url"
    done <"$scratch/asked"

    # 3. The picture of all of it, in a frame as high as the page.
    cp "$report" "$scratch/page.html"
    sed -i "s/height:900px/height:${high}px/" "$scratch/frame.html"
    browse --window-size="$width,$high" --virtual-time-budget=10000 \
        --screenshot="$scratch/picture.png" "file://$scratch/frame.html" >/dev/null
    mv "$scratch/picture.png" "$folder/$name-$width.png"
    echo "wrote $folder/$name-$width.png"
done
exit "$failed"
