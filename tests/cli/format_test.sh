#!/usr/bin/env bash
# Every source file, and README's kernel in one file, is as clang-format leaves it. Its output differs between versions:
# 14 (Debian 12) decides.
set -euo pipefail
cd -- "$1"
if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
  echo 'skipped: needs clang-format 14'
  exit 77
fi
find harness reference kernels experiments tests -type f \
  \( -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 clang-format --dry-run -Werror
recipe=$(sed -n '/^```cuda$/,/^```$/{/^```/!p}' README.md)
[ -n "$recipe" ]
clang-format --dry-run -Werror --assume-filename=README.md.cu <<<"$recipe"
