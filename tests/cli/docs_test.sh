#!/usr/bin/env bash
# What the pages promise is there: commands, their options, and the files that are linked or named. Commands that take
# a moment are run, on files of a tiny sweep. Usage: docs_test.sh PROGRAM PROJECT_FOLDER
set -uo pipefail

program=$1
project=$2
export INFEROMETER_ROOT=$project
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/expect.sh"
cd -- "$project" || exit 1
pages=(README.md CONTRIBUTING.md docs/*.md)

# Options of a command, a line each.
help_of() {
  [ -s "$work/help.$1" ] || "$program" "$1" --help 2>/dev/null | grep -oE -- '(^|[ ,])--?[a-z][a-z-]*' | tr -d ' ,' | sort -u >"$work/help.$1"
  cat "$work/help.$1"
}

# Commands of all pages as PAGE:COMMAND, those that go on in the next line as one.
commands() {
  for page in "${pages[@]}"; do
    sed -e ':join' -e '/\\$/{N;s/ *\\\n */ /;b join' -e '}' -- "$page" | grep -oE '\./inferometer [a-z].*' | sed -e 's/`.*//' -e "s|^|$page:|"
  done
}

lines=0
while IFS= read -r line; do
  page=${line%%:*} line=${line#*:}
  read -ra words <<<"$line"  # with the comment behind it, which names further options
  asked=${words[1]:-}
  [ "$asked" != test ] || continue  # the launcher's own, with the options of ctest
  lines=$((lines + 1))
  [ -n "$(help_of "$asked")" ] || { fail "$page" "there is no command '$asked': $line"; continue; }
  for word in "${words[@]:2}"; do
    word=${word%,}
    [[ $word =~ ^--?[a-z] ]] || continue
    help_of "$asked" | grep -qxF -e "${word%%=*}" || fail "$page" "$asked has no option $word: $line"
  done
done < <(commands)
[ "$lines" -ge 25 ] || fail 'pages' "only $lines commands were found"

# Options that the text names belong to some command, but for those of other programs.
for asked in $("$program" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]\+\) .*/\1/p'); do help_of "$asked"; done | sort -u >"$work/options"
options=0
while IFS= read -r named; do
  page=${named%%:*} option=${named#*:}
  case $page:$option in CONTRIBUTING.md:--reader | CONTRIBUTING.md:--done | docs/quantize.md:--dtype) continue ;; esac  # the fuzzer's, sanitize.sh's, vLLM's
  options=$((options + 1))
  grep -qxF -e "$option" "$work/options" || fail "$page" "no command has the option $option"
done < <(grep -oE '`[^`]+`' -- "${pages[@]}" | grep -oP '^[^:]+:|(?<![\w-])--[a-z][a-z-]*' | awk '/:$/ {page = $0; next} {print page $0}')
[ "$options" -ge 20 ] || fail 'pages' "only $options options were found in the text"

links=0
while IFS= read -r link; do
  page=${link%%:*} target=${link#*:}
  target=${target#](}
  target=${target%%[)#]*}
  case $target in '' | http*) continue ;; esac
  links=$((links + 1))
  [ -e "$(dirname -- "$page")/$target" ] || fail "$page" "it links $target, which is not there"
done < <(grep -oE '\]\([^)]+\)' -- "${pages[@]}")
[ "$links" -ge 50 ] || fail 'pages' "only $links links were found"

while IFS= read -r named; do
  page=${named%%:*} file=${named#*:}
  compgen -G "$file" >/dev/null || fail "$page" "it names $file, which is not there"
done < <(grep -oP '(?<![-/\w])(experiments|results|harness|reference|tests)/[a-z0-9_*/.-]+\.(json|md|cpp|hpp|sh|py)' -- "${pages[@]}")

# Commands of all pages, with files of a tiny sweep for those that their reader has. claims_test.sh runs docs/claims.md's.
cd -- "$work" || exit 1
cat >CONFIG.json <<'JSON'
{"schema": "inferometer.sweep/1", "name": "tiny", "question": "Does it run?", "operator": "attention_prefill",
 "variants": ["cpu.naive", "cpu.flash"], "baseline": "cpu.naive", "fixed": {"q_heads": 1, "kv_heads": 1, "head_dim": 32, "dtype": "f32", "seq_len": 16},
 "measure": {"min_samples": 1, "max_seconds": 0.05, "cache": "warm"}}
JSON
"$program" run CONFIG.json -o FILE.json --quiet >said 2>&1  # its exit code may be a matter of timing
[ "$(measured_rows FILE.json)" = 2 ] || fail 'run CONFIG.json' "not 2 measured rows: $(cat said)"
for copy in before after; do cp FILE.json $copy.json; done
ran=0
while IFS= read -r line; do
  line=${line#*:}
  line=${line%%#*}
  read -ra words <<<"${line#./inferometer }"
  case $line in
    *' compare before.json '* | *' report FILE.json'* | *' export FILE.json '* | *' --demonstrations'*) ;;
    *path/to/*) continue ;;  # a model of the reader's: quantize_test.sh and file_layer_test.cpp make one
    *' list '*) ;;
    *' run CONFIG.json --against before.json'*) words+=(-o again.json --quiet) ;;
    *' run experiments/'*)
      line=${line/cuda.simple,/}            # README's own kernel, which is not in this program
      eval "words=(${line#./inferometer })"  # what stands in quotes is one word
      words[1]=$project/${words[1]}
      words+=(--dry-run)
      ;;
    *) continue ;;
  esac
  ran=$((ran + 1))
  timeout 600 "$program" "${words[@]}" >said 2>&1 </dev/null
  case $? in 0 | 1 | 3) ;; *) fail "$line" "$(cat said)" ;; esac  # 1, 3: slower or suspect rows, a matter of timing
done < <(cd -- "$project" && commands | grep -v '^docs/claims.md:')
[ "$ran" -ge 13 ] || fail 'pages' "only $ran of their commands were run"

# README's own sweep is one, and takes the values that the text below it gives to options of `run`.
awk '/^```json$/ {on = 1; next} /^```$/ {on = 0} on' "$project/README.md" >mine.json
"$program" run mine.json --dry-run >said 2>&1 && grep -q 'kv_heads=8 q_len=256 ' said || fail "README's sweep" "$(cat said)"
values=0
while IFS= read -r option; do
  eval "words=($option)"
  values=$((values + 1))
  "$program" run mine.json "${words[@]}" --dry-run >said 2>&1 || fail "README.md" "run refuses $option: $(cat said)"
done < <(grep -oE "\`--(filter|set|variants) [^\`]+\`" "$project/README.md" | tr -d '`')
[ "$values" -ge 3 ] || fail 'README.md' "only $values options with values were found"

# Words that README sets as code are those of results files, of `list` and of helps, head a column of what `run` prints, or
# are a whole text in the harness, as flags of a timing and phases of a row are.
"$program" run CONFIG.json -o table.json --quiet 2>&1 | grep '^variant ' >columns
{
  cat "$project/results/schema.json" columns
  "$program" list
  for asked in '' run list profile compare doctor; do "$program" $asked --help; done
  (cd -- "$project" && ls harness && grep -rhoE '"[a-z_]+"' harness && grep '"name"' CMakePresets.json)
} 2>&1 | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >known
named=0
while IFS= read -r word; do
  named=$((named + 1))
  grep -qxF -e "$word" known || fail 'README.md' "nothing is called $word"
done < <(grep -oE '`[a-z][a-z0-9_]*`' "$project/README.md" | tr -d '`' | sort -u)
[ "$named" -ge 20 ] || fail 'README.md' "only $named names were found"
for column in $(sed -n '/^attention_prefill: batch/{n;p;q}' "$project/README.md"); do
  case $column in q_len | kv_len | causal) continue ;; esac  # of the problem, where it differs between rows
  grep -qwF -e "$column" columns || fail 'README.md' "run prints no column $column"
done

# What README shows of commands on published files is what they print.
cd -- "$project" || exit 1
shown_in_readme() {
  while IFS= read -r line; do
    [ -z "$line" ] || grep -qF -e "${line%"${line##*[! ]}"}" README.md || fail "README.md" "it does not show this line of $1: $line"
  done
}
"$program" compare results/h200/attention_prefill.json results/h200-x2/attention_prefill.json >"$work/said" 2>&1
[ "$(wc -l <"$work/said")" -ge 8 ] || fail 'compare of published files' "$(cat "$work/said")"
shown_in_readme compare <"$work/said"
"$program" profile experiments/attention_prefill.json --row a24b78e2016f --tool ncu --print 2>&1 |
  sed "s| $(realpath -- "$program")|\n|; s|^ *||" >"$work/said"
grep -q '^ncu ' "$work/said" || fail 'profile --print' "$(cat "$work/said")"
shown_in_readme profile <"$work/said"

# The kernel of README compiles, where there is a compiler for it; the example of a peer has the lines that are promised.
if command -v nvcc >/dev/null; then
  awk '/^```cuda$/ {on = 1; next} /^```$/ {on = 0} on' README.md >"$work/simple.cu"
  grep -q '__global__' "$work/simple.cu" || fail 'README.md' 'it has no kernel'
  (cd -- "$work" && nvcc -std=c++20 -arch=sm_80 --expt-relaxed-constexpr -I"$project" -c simple.cu -o simple.o >said 2>&1) ||
    fail 'the kernel of README.md' "$(cat "$work/said")"
fi
peer_lines=$(awk '/^```python$/ {on = 1; next} /^```$/ {on = 0} on' docs/peers.md | wc -l)
if [ "$peer_lines" -lt 20 ] || [ "$peer_lines" -gt 40 ]; then fail 'docs/peers.md' "its example has $peer_lines lines, 40 are promised"; fi

echo
echo "$lines commands, $options options, $links links, $failures failures"
[ "$failures" = 0 ]
