#!/usr/bin/env bash
# Checks the sources and runs all tests; continuous integration runs this (.ci/run). See --help.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$source_root"

usage() {
  cat <<'USAGE'
usage: ./scripts/test.sh [--quick] [--minutes N]
Installs the Debian packages that are missing, then:
  1. checks the sources: format (clang-format), width of lines, direction of includes
     (check_includes.py), shell scripts (shellcheck)
  2. builds with g++, warnings as errors and assertions on, in build-test/, and runs all tests
  3. builds with ThreadSanitizer in build-test-thread/, and runs the tests that have threads, and a
     live cluster
  4. runs clang-tidy over each source alone (.clang-tidy)
  5. builds with clang++, warnings as errors and no assertions, as in a release, in
     build-test-clang/, and runs all tests but most of those with live clusters
  6. builds with AddressSanitizer and UndefinedBehaviorSanitizer in build-test-address/, and runs
     the unit tests, part of the simulation, and a live cluster
The last lines name what failed, and the last of all is "N passed, N failed". The exit code is 0
only if every stage passed something and none failed.
  --quick       1 and 2 only
  --minutes N   of 3 to 6 only what will have ended by then, as far as the time of the first build
                tells; the last lines name what was left out
USAGE
}

quick=false
minutes=
while (($# > 0)); do
  case $1 in
    --quick) quick=true ;;
    --minutes)
      [[ ${2:-} =~ ^[1-9][0-9]{0,4}$ ]] || misuse "--minutes \"${2:-}\": expected 1 to 99999"
      minutes=$2
      shift
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *) misuse "there is no option \"$1\"" ;;
  esac
  shift
done

passed=0
failed=0
failures=()
left_out=()

# However this ends, it ends with the line that says how.
finish() {
  local code=$?
  if ((code != 0 && failed == 0)); then failed=1; fi
  if ((${#failures[@]} > 0)); then printf 'failed: %s\n' "${failures[@]}"; fi
  if ((${#left_out[@]} > 0)); then printf 'left out for want of time: %s\n' "${left_out[@]}"; fi
  echo "$passed passed, $failed failed"
  if ((failed > 0 && code == 0)); then code=1; fi
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# check COMMAND...: counts one, and prints what the command says only if it fails.
check() {
  local log
  if log=$("$@" 2>&1); then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    failures+=("$*")
    printf '      failed: %s\n%s\n' "$*" "$log"
  fi
}

# files_named GLOB...: in git; without git (an unpacked archive), outside build directories.
files_named() {
  git ls-files "$@" 2>/dev/null && return
  local names=()
  for glob in "$@"; do names+=(-o -name "$glob"); done
  find . -path './build*' -prune -o \( "${names[@]:1}" \) -print
}

check_format() {
  local files log
  mapfile -t files < <(files_named '*.h' '*.hpp' '*.c' '*.cc')
  log=$(clang-format --dry-run -Werror "${files[@]}" 2>&1) && return
  echo "run clang-format -i on:"
  grep -o '^[^ :]*:[0-9]*:[0-9]*: error' <<<"$log" | cut -d: -f1 | sort -u
  return 1
}

# clang-format leaves comments as they are, and knows no documents. Tables may be wide.
check_widths() {
  local files
  mapfile -t files < <(files_named '*.h' '*.hpp' '*.c' '*.cc' '*.md')
  awk '{ most = FILENAME ~ /md$/ ? 120 : 100 }
       length > most && !/^\|/ { print FILENAME ":" FNR ": wider than " most; wide = 1 }
       END { exit wide }' "${files[@]}"
}

# Most of a build's time goes into headers of libraries, so the trees that are only for tests take
# eight sources at a time. clang-tidy reads each source alone, and finds includes that are missing.
together=(-Dunity=on -Dunity_size=8)

# clang-tidy over our sources, each alone; the tests' own are left out for the time it takes.
check_with_clang_tidy() {
  local log code=0
  log=$(run-clang-tidy -quiet -p build-tidy -j "$(nproc)" \
    "^$source_root/(aggregation|protocol|bcube_forwarding|control|dataplane|trainer|cli)/" 2>&1) ||
    code=$?
  grep -q 'clang-tidy.*/protocol/wire.cc' <<<"$log" || code=1
  grep -v '^clang-tidy\|warnings.* generated' <<<"$log" || true
  return "$code"
}

# What the tests run under; empty for most.
under=()

# test_tree DIRECTORY [MESON TEST OPTION...]: builds what the tests need, runs them, counts.
test_tree() {
  local directory=$1
  shift
  local log=$directory/meson-logs/testlog.json
  rm -f "$log"
  local code=0
  "${under[@]}" meson test -C "$directory" --print-errorlogs "$@" || code=$?
  [[ -f $log ]] || die "no test ran in $directory"
  local tree_passed tree_failed name
  {
    read -r tree_passed tree_failed
    while read -r name; do failures+=("$directory: $name"); done
  } < <(/usr/bin/python3 scripts/count_tests.py "$log")
  ((tree_passed + tree_failed > 0)) || die "no test ran in $directory"
  if ((code != 0 && tree_failed == 0)); then tree_failed=1; fi
  passed=$((passed + tree_passed))
  failed=$((failed + tree_failed))
}

# sanitized_tree DIRECTORY SANITIZERS: for tests alone. Optimised a little, so that it is built and
# run soon; with lines, so that reports name them. Its warnings are the other builds' business.
sanitized_tree() {
  CXX='ccache g++' CC='ccache gcc' configure_tree "$1" -Db_sanitize="$2" -Db_lundef=false \
    -Db_ndebug=false -Doptimization=g -Ddebug=false -Dcpp_args=-g1 -Dc_args=-g1 \
    -Dtests=enabled "${together[@]}"
}

# has_time PERCENT STAGE STEPS: whether a stage of so many steps, which takes so much of the time of
# the first build, will end in time. It is left out else.
first_build=0  # seconds
has_time() {
  [[ -n $minutes ]] || return 0
  ((SECONDS + first_build * $1 / 100 <= minutes * 60)) && return 0
  left_out+=("$2")
  steps_total=$((steps_total - $3))
  return 1
}

packages=("${build_packages[@]}" "${training_packages[@]}" "${test_packages[@]}")
steps_total=4
if ! $quick; then
  packages+=(clang)
  steps_total=$((steps_total + 6))
fi

step "installing what is missing"
install_packages "${packages[@]}"

step "checking format, includes and shell scripts"
check check_format
check check_widths
check /usr/bin/python3 scripts/check_includes.py
check shellcheck -x .ci/run scripts/*.sh tests/nics/init tests/unit/aggregation/*.sh

step "building with g++, warnings as errors"
CXX='ccache g++' configure_tree build-test -Dwerror=true -Db_ndebug=false \
  -Dtests=enabled -Dbenches=auto -Dheaders=true "${together[@]}"
first_build=$SECONDS
build_tree build-test
first_build=$((SECONDS - first_build))
step "testing"
test_tree build-test

if ! $quick && has_time 120 "ThreadSanitizer" 1; then
  # Builds only what these tests need.
  step "building and testing with ThreadSanitizer"
  sanitized_tree build-test-thread thread
  # g++ 12's ThreadSanitizer finds no room for itself where the kernel randomises addresses widely.
  if setarch --addr-no-randomize true 2>/dev/null; then under=(setarch --addr-no-randomize); fi
  test_tree build-test-thread --suite threads --timeout-multiplier 5
  under=()
fi

if ! $quick && has_time 140 "clang-tidy" 1; then
  step "running clang-tidy"
  CXX=g++ configure_tree build-tidy -Db_ndebug=false
  check check_with_clang_tidy
fi

# The release that users run has no assertions, so between the two compilers both forms are built
# without a warning, and tested.
if ! $quick && has_time 110 "clang++" 2; then
  step "building with clang++, warnings as errors"
  CXX='ccache clang++' configure_tree build-test-clang -Dwerror=true -Dtests=enabled \
    "${together[@]}"
  build_tree build-test-clang
  # What the integration tests add to the one that runs in every tree does not hang on the compiler.
  step "testing clang's build"
  GRADCUBE_SIMULATION_SEEDS=100 test_tree build-test-clang --no-suite embedded --no-suite memif \
    --no-suite veth
fi

if ! $quick && has_time 400 "AddressSanitizer and UndefinedBehaviorSanitizer" 2; then
  step "building with AddressSanitizer and UndefinedBehaviorSanitizer"
  sanitized_tree build-test-address address,undefined
  build_tree build-test-address
  step "testing with AddressSanitizer and UndefinedBehaviorSanitizer"
  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 GRADCUBE_SIMULATION_SEEDS=100 \
    test_tree build-test-address --timeout-multiplier 5
fi

step_done
