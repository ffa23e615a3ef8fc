#!/usr/bin/env bash
# Installs what is missing, builds with warnings as errors, checks the format, runs all tests.
# The last line is "N passed, N failed"; the exit code is 0 only if something passed and nothing
# failed.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$source_root"

usage() {
  cat <<'USAGE'
usage: ./scripts/test.sh [--clang] [--sanitize]
  --clang      also build with clang, warnings as errors, and run the tests of that build
  --sanitize   also build with the address and undefined-behaviour sanitizers, and test that
USAGE
}

clang=false
sanitize=false
for argument in "$@"; do
  case $argument in
    --clang) clang=true ;;
    --sanitize) sanitize=true ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
done

passed=0
failed=0

# However this ends, it ends with the line that says how.
finish() {
  local code=$?
  if ((code != 0 && failed == 0)); then failed=1; fi
  echo "$passed passed, $failed failed"
  if ((failed > 0 && code == 0)); then code=1; fi
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

check_format() {
  local files log
  # Without git (an unpacked archive), every source that is not in a build directory.
  mapfile -t files < <(git ls-files '*.h' '*.cc' '*.cpp' 2>/dev/null ||
    find . -path './build*' -prune -o -name '*.h' -print -o -name '*.cc' -print \
      -o -name '*.cpp' -print)
  if log=$(clang-format --dry-run -Werror "${files[@]}" 2>&1); then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "      not formatted; run clang-format -i on:"
    grep -o '^[^ :]*:[0-9]*:[0-9]*: error' <<<"$log" | cut -d: -f1 | sort -u | sed 's/^/        /'
  fi
}

# test_tree DIRECTORY [MESON TEST OPTION...]: runs the tests and adds to the counts.
test_tree() {
  local directory=$1
  shift
  local log=$directory/meson-logs/testlog.json
  rm -f "$log"
  local code=0
  meson test -C "$directory" --no-rebuild --print-errorlogs "$@" || code=$?
  [[ -f $log ]] || die "no test ran in $directory"
  local tree_passed tree_failed
  read -r tree_passed tree_failed < <(/usr/bin/python3 scripts/count_tests.py "$log")
  ((tree_passed + tree_failed > 0)) || die "no test ran in $directory"
  if ((code != 0 && tree_failed == 0)); then tree_failed=1; fi
  passed=$((passed + tree_passed))
  failed=$((failed + tree_failed))
}

packages=("${build_packages[@]}" clang-format)
steps_total=4
if $clang; then
  packages+=(clang)
  steps_total=$((steps_total + 2))
fi
if $sanitize; then steps_total=$((steps_total + 2)); fi

step "installing what is missing"
install_packages "${packages[@]}"

step "checking the format"
check_format

# The first build keeps assertions; the release build that users run has none, so the clang build
# leaves them out: between them both forms are free of warnings.
step "building with g++, warnings as errors"
CXX='ccache g++' build_tree build-test -Dwerror=true -Db_ndebug=false
step "testing"
test_tree build-test

if $clang; then
  step "building with clang++, warnings as errors"
  CXX='ccache clang++' build_tree build-test-clang -Dwerror=true
  step "testing clang's build"
  test_tree build-test-clang
fi

if $sanitize; then
  step "building with sanitizers"
  CXX='ccache g++' build_tree build-test-sanitize -Dbuildtype=debugoptimized -Db_ndebug=false \
    -Db_sanitize=address,undefined -Db_lundef=false
  step "testing with sanitizers"
  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 test_tree build-test-sanitize \
    --timeout-multiplier 5
fi
step_done
