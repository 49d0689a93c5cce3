#!/usr/bin/env bash
# The HTML report in a browser: sorted, filtered, clicked through, on a wide and a narrow screen, and pictured.
# Usage: report_page_test.sh PROGRAM. Skipped (77) without Chromium.
set -uo pipefail

program=$1
driver=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/report_page_driver.js
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || exit 77
source "$(dirname -- "$driver")/expect.sh"

cat >tiny.json <<'JSON'
{"schema": "inferometer.sweep/1", "name": "tiny",
 "question": "Is </script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'> escaped?",
 "operator": "attention_prefill", "variants": ["cpu.naive", "cpu.flash", "cuda.flash_sm80"], "baseline": "cpu.naive",
 "fixed": {"q_heads": 2, "kv_heads": 1, "head_dim": 32, "dtype": "f32"},
 "axes": {"seq_len": [16, 33], "causal": [false, true]},
 "measure": {"min_samples": 20, "max_samples": 60, "max_seconds": 0.2, "cache": "warm"}}
JSON
expect 0 'cpu.flash' run tiny.json -o out.json --quiet
expect 0 '' report out.json -o page.html
grep -q 'no charts' page.html && exit 77  # a build without Chart.js
{ grep -vE '^</(body|html)>$' page.html; printf '<script>\n'; cat -- "$driver"; printf '</script>\n</body>\n</html>\n'; } >driven.html

# --no-sandbox: a browser started by root has none.
look() {
  timeout 600 "$browser" --headless --no-sandbox --disable-gpu --no-first-run --user-data-dir="$work/profile" \
    --host-resolver-rules='MAP * ~NOTFOUND' --virtual-time-budget=20000 --enable-logging=stderr "$@" "file://$work/driven.html" 2>browser.log
}
for size in 1280,1600 380,1600; do
  look --window-size=$size --dump-dom >dom.html || fail "window $size" "the browser failed: $(tail -n 3 browser.log)"
  sed -n '/<pre id="found">/,/<\/pre>/p' dom.html | sed 's/<[^>]*>//g' >found.txt
  [ "$(grep -c '^ok' found.txt)" -ge 20 ] || fail "window $size" "too few checks: $(cat found.txt)"
  grep -q '^FAILED' found.txt && fail "window $size" "$(grep '^FAILED' found.txt)"
  grep -E 'Uncaught|Refused to' browser.log && fail "window $size" 'the console has an error'
  echo "ok (window $size): $(grep -c '^ok' found.txt) checks"
done
look --window-size=1280,1600 --screenshot="$work/page.png" >/dev/null
[ "$(stat -c %s page.png 2>/dev/null || echo 0)" -gt 30000 ] || fail 'picture' 'page.png is missing or empty'
[ "$failures" = 0 ]
