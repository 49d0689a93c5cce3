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
cat >bits.json <<'JSON'
{"schema": "inferometer.sweep/1", "name": "bits", "question": "Which bits?", "operator": "matmul",
 "variants": ["cpu.eigen", "cpu.dequantize"], "baseline": {"variant": "cpu.eigen", "problem": {"bits": 16, "group_size": 0}},
 "fixed": {"n": 64, "k": 128, "dtype": "f16"}, "axes": {"m": [1, 16]},
 "zip": [{"bits": [16, 8, 4], "group_size": [0, 64, 64]}], "where": ["(variant == 'cpu.eigen') == (bits == 16)"],
 "measure": {"min_samples": 20, "max_samples": 60, "max_seconds": 0.2, "cache": "warm"}}
JSON
expect 0 'cpu.dequantize' run bits.json -o bits.out --quiet
expect 0 '' report out.json bits.out -o two.html
for name in page two; do
  { grep -vE '^</(body|html)>$' $name.html; printf '<script>\n'; cat -- "$driver"; printf '</script>\n</body>\n</html>\n'; } >driven_$name.html
done
# A window of Chromium is at least 500 pixels wide, a frame in it may be as narrow as a telephone.
cat >driven_narrow.html <<'HTML'
<!doctype html><iframe src="driven_page.html" style="width: 380px; height: 1500px; border: 0"></iframe>
<script>
addEventListener('message', (message) => {
  document.body.append(Object.assign(document.createElement('pre'), {id: 'found', textContent: message.data}));
});
</script>
HTML

# --no-sandbox: a browser started by root has none.
look() {
  timeout 600 "$browser" --headless --no-sandbox --disable-gpu --no-first-run --user-data-dir="$work/profile" \
    --host-resolver-rules='MAP * ~NOTFOUND' --virtual-time-budget=20000 --enable-logging=stderr "${@:2}" "file://$work/$1" 2>browser.log
}
# opened PAGE WINDOW WIDTH CHECKS
opened() {
  local page=$1 size=$2 width=$3 checks=$4
  look "driven_$page.html" --window-size=$size --dump-dom >dom.html || fail "$page $size" "the browser failed: $(tail -n 3 browser.log)"
  sed -n '/<pre id="found">/,/<\/pre>/p' dom.html | sed 's/<[^>]*>//g' >found.txt
  [ "$(grep -c '^ok' found.txt)" -ge "$checks" ] || fail "$page $size" "too few checks: $(cat found.txt)"
  grep -q '^FAILED' found.txt && fail "$page $size" "$(grep '^FAILED' found.txt)"
  grep -q "^width $width$" found.txt || fail "$page $size" "it was not $width wide: $(grep '^width' found.txt)"
  grep -E 'Uncaught|Refused to' browser.log && fail "$page $size" 'the console has an error'
  echo "ok ($page $size): $(grep -c '^ok' found.txt) checks"
}
opened page 1280,1600 1280 20
opened narrow 600,1600 380 20
opened two 1280,500 1280 20
look driven_page.html --window-size=1280,1600 --screenshot="$work/page.png" >/dev/null
[ "$(stat -c %s page.png 2>/dev/null || echo 0)" -gt 30000 ] || fail 'picture' 'page.png is missing or empty'
look two.html --no-pdf-header-footer --print-to-pdf="$work/two.pdf" >/dev/null
pages=$(grep -acE '/Type ?/Page$' two.pdf)
[ "${pages:-0}" -ge 2 ] || fail 'print' "two sweeps make $pages pages"
[ "$failures" = 0 ]
