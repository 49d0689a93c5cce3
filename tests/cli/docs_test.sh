#!/usr/bin/env bash
# What the pages promise is there: commands, their options, and the files that are linked or named. The pages' examples
# are run by the tests of their commands. Usage: docs_test.sh PROGRAM PROJECT_FOLDER
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

lines=0
while IFS= read -r line; do
  page=${line%%:*} line=${line#*:}
  read -ra words <<<"${line%%#*}"
  command=${words[1]:-}
  [ "$command" != test ] || continue  # the launcher's own, with the options of ctest
  lines=$((lines + 1))
  [ -n "$(help_of "$command")" ] || { fail "$page" "there is no command '$command': $line"; continue; }
  for word in "${words[@]:2}"; do
    [[ $word =~ ^--?[a-z] ]] || continue
    help_of "$command" | grep -qxF -e "${word%%=*}" || fail "$page" "$command has no option $word: $line"
  done
done < <(grep -oE '\./inferometer [a-z].*' -- "${pages[@]}" | sed 's/`.*//')
[ "$lines" -ge 25 ] || fail 'pages' "only $lines commands were found"

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

echo
echo "$lines commands, $links links, $failures failures"
[ "$failures" = 0 ]
