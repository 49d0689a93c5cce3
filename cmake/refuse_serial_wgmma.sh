#!/usr/bin/env bash
# refuse_serial_wgmma.sh PATTERN COMMAND...: runs a compiler. For sources whose path matches PATTERN it fails when ptxas
# says that it waits for each wgmma (C7504 .. C7519, messages that no option makes errors): the overlap that these
# kernels are about is then gone, and only their speed would tell.
pattern=$1
shift
messages=$("$@" 2>&1)
status=$?
[ -z "$messages" ] || printf '%s\n' "$messages" >&2
if [ $status -eq 0 ] && [[ $* =~ $pattern ]] && [[ $messages =~ \(C75[01][0-9]\) ]]; then
  echo "refuse_serial_wgmma.sh: ptxas serialises wgmma, see above" >&2
  exit 1
fi
exit $status
