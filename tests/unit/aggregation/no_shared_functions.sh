#!/bin/sh
# Usage: no_shared_functions.sh LIBRARY...
# Fails if a library with instructions that not every CPU has defines a function that the linker may
# choose for the whole program (weak, or unique): others would then run those instructions.
failed=0
for library in "$@"; do
  listing=$("${NM:-nm}" --defined-only --demangle "$library") || exit 1
  if shared=$(printf '%s\n' "$listing" | grep -E '^[0-9a-fA-F]* [WVuwv] '); then
    printf '%s shares:\n%s\n' "$library" "$shared" >&2
    failed=1
  fi
  printf '%s\n' "$listing" | grep -q 'Kernels$' || { echo "$library has no table" >&2; failed=1; }
done
exit $failed
