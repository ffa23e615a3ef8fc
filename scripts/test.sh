#!/usr/bin/env bash
# Checks the sources and runs all tests; continuous integration runs this (.ci/run). See --help.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$source_root"

usage() {
  cat <<'USAGE'
usage: ./scripts/test.sh [--full | --deep] [STAGE...]
Installs the Debian packages that are missing, then:
  1. checks the sources: format (clang-format), rules of the house (tidy.py), direction of includes
     (check_includes.py), Python (pyflakes), shell scripts (shellcheck)
  2. builds with g++, warnings as errors and assertions on, in build-test/
  3. runs the unit tests, the fuzzers' replays and the simulation, then the integration tests on the
     embedded fabric
  4. builds the daemon, the tool and the library with clang++, AddressSanitizer and
     UndefinedBehaviorSanitizer in build-test-clang/, and runs a live cluster
The last lines name what failed, and the last of all is "N passed, N failed". The exit code is 0
only if nothing failed and every stage of tests ran some.
  --full   also the integration tests on memif, veth and udp and with PyTorch; the benches' build and each
           header alone; all of clang++'s build, its warnings as errors, and the unit tests and part
           of the simulation in it; what has threads under ThreadSanitizer, in build-test-thread/;
           clang-tidy over what the commits of three hours changed. Continuous integration runs this.
  --deep   also what takes hours: the integration tests that --full leaves out on veth and udp, longer rounds,
           100,000 seeds of the simulation, all tests under the sanitizers, the tests of clang++'s
           release build, clang-tidy over all sources, libFuzzer (10 minutes a target), valgrind, the
           instructions of a segment, what a host may limit (scripts/try_limits.py), Debian packages and
           a container's image of them, a build for AArch64, and bugs planted that tests must notice
  STAGE    runs only this one of them, as its name stands before its title: a --deep run in parts, for
           instance, or once more what failed: ./scripts/test.sh --deep test_seeds fuzz
USAGE
}

extent=usual # usual, full, deep
only=()      # the stages to run; none: all
while (($# > 0)); do
  case $1 in
    --full) extent=full ;;
    --deep) extent=deep ;;
    -h | --help)
      usage
      exit 0
      ;;
    -*) misuse "there is no option \"$1\"" ;;
    *) only+=("$1") ;;
  esac
  shift
done
beyond_usual() { [[ $extent != usual ]]; }
deep() { [[ $extent == deep ]]; }

passed=0
failed=0
skipped=0
failures=()
under_way= # the stage
scratch=

# However this ends, it ends with the line that says how.
finish() {
  local code=$?
  trap '' INT TERM
  end_attended
  if [[ -n $scratch ]]; then rm -rf "$scratch"; fi
  if ((code != 0)); then
    failed=$((failed + 1))
    local what="ended"
    if ((code > 128)); then what="ended by a signal"; fi
    failures+=("$what${under_way:+ while $under_way}")
  fi
  if ((${#failures[@]} > 0)); then printf 'failed: %s\n' "${failures[@]}"; fi
  if ((skipped > 0)); then echo "skipped: $skipped programs, which say why"; fi
  echo "$passed passed, $failed failed"
  if ((failed > 0 && code == 0)); then code=1; fi
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
scratch=$(mktemp -d)

# check COMMAND...: counts one, and prints what the command says only if it fails.
check() {
  if attended_into "$scratch/check" "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    local what="$*"
    failures+=("${what:0:100}")
    printf '      failed: %s\n' "${what:0:100}"
    cat "$scratch/check"
  fi
}

# files_named GLOB...: in git; in an unpacked archive, outside build directories.
files_named() {
  if [[ -e .git ]] && git ls-files "$@" 2>/dev/null; then return; fi
  local names=()
  for glob in "$@"; do names+=(-o -name "$glob"); done
  find . -path './build*' -prune -o \( "${names[@]:1}" \) -print
}

# list_files ARRAY GLOB...: fails if there is none.
list_files() {
  local -n listed=$1
  shift
  mapfile -t listed < <(files_named "$@")
  if ((${#listed[@]} == 0)); then
    echo "there is no file named $*"
    return 1
  fi
}

check_format() {
  local files log
  list_files files '*.h' '*.hpp' '*.c' '*.cc' || return
  log=$(clang-format --dry-run -Werror "${files[@]}" 2>&1) && return
  echo "run clang-format -i on:"
  grep -o '^[^ :]*:[0-9]*:[0-9]*: error' <<<"$log" | cut -d: -f1 | sort -u
  return 1
}

# Names that nothing defines. What is imported for its effect is not unused.
check_python() {
  local files said
  list_files files '*.py' || return
  said=$(pyflakes3 "${files[@]}" 2>&1 | grep -v 'imported but unused' || true)
  if [[ -z $said ]]; then return; fi
  echo "$said"
  return 1
}

# Our folders with sources.
product=(aggregation protocol bcube_forwarding control dataplane trainer cli)

# Trees of any clone share what ccache holds: it sees paths from the clone's root on, and so does
# __FILE__. ccache 4.7 leaves paths with a blank as they are in the lists of what a source includes:
# then another clone, which takes the object, would not build it anew when its own source changes.
if [[ $source_root != *[[:space:]]* ]]; then export CCACHE_BASEDIR=$source_root CCACHE_NOHASHDIR=1; fi
# What the sanitizer finds ends the program that does it.
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
paths="'-ffile-prefix-map=$source_root/='"

# tree DIRECTORY COMPILER [MESON OPTION...]: configures a tree with tests, of g++ or clang++.
tree() {
  local directory=$1 compiler=$2
  shift 2
  local c=gcc
  if [[ $compiler == clang++ ]]; then c=clang; fi
  CXX="ccache $compiler" CC="ccache $c" configure_tree "$directory" -Dtests=enabled -Dwerror=true \
    -Db_ndebug=false -Dcpp_args="[$paths]" -Dc_args="[$paths]" "$@"
}

# sanitized_tree DIRECTORY COMPILER SANITIZERS [MESON OPTION...]: optimised a little, so that it is
# built and run soon; with lines, so that reports name them.
sanitized_tree() {
  tree "$1" "$2" -Db_sanitize="$3" -Db_lundef=false -Doptimization=1 -Ddebug=false \
    -Dcpp_args="[$paths, '-g1']" -Dc_args="[$paths, '-g1']" "${@:4}"
}

# Tests run side by side: many wait for most of their time, and none may need a core for itself.
side_by_side=(--num-processes $((2 * $(nproc) + 1)))

# What meson runs under, for all tests of a stage.
under=()

# run_tests DIRECTORY [MESON TEST OPTION...]: builds what these tests need, runs them, counts.
run_tests() {
  local directory=$1
  shift
  rm -f "$directory"/meson-logs/testlog*
  local code=0
  # A shell that started this in the background left SIGINT ignored, and tests send it.
  attended env --default-signal=INT "${under[@]}" meson test -C "$directory" \
    --print-errorlogs "$@" || code=$?
  local log=("$directory"/meson-logs/testlog*.json)  # under a wrapper, its name is in this
  [[ -f ${log[0]} ]] || die "no test ran. By hand: meson test -C $directory $*"
  local run_passed run_failed run_skipped name
  {
    read -r run_passed run_failed run_skipped
    while read -r name; do failures+=("$directory: $name"); done
  } < <(/usr/bin/python3 scripts/count_tests.py "${log[0]}")
  ((run_passed + run_failed > 0)) || die "no test ran. By hand: meson test -C $directory $*"
  if ((code != 0 && run_failed == 0)); then
    run_failed=1
    failures+=("$directory: meson test")
  fi
  if ((run_failed > 0)); then
    echo "      By hand: meson test -C $directory $* (log: ${log[0]%.json}.txt)"
  fi
  passed=$((passed + run_passed))
  failed=$((failed + run_failed))
  skipped=$((skipped + run_skipped))
}

packages=("${build_packages[@]}" "${training_packages[@]}" "${test_packages[@]}")
if beyond_usual; then packages+=("${torch_packages[@]}"); fi
if deep; then packages+=(valgrind slurm-wlm munge openmpi-bin); fi

install_missing() { install_packages "${packages[@]}"; }

check_sources() {
  check check_format
  check /usr/bin/python3 scripts/tidy.py
  check /usr/bin/python3 scripts/check_includes.py
  check check_python
  check shellcheck -x .ci/run debian/tests/allreduce debian/tests/torch packaging/container/try_image packaging/cross/try_aarch64 scripts/*.sh tests/nics/init tests/unit/aggregation/*.sh
}

gnu_tree() {
  local benches=disabled torch=disabled headers=false
  if beyond_usual; then benches=auto torch=enabled headers=true; fi
  tree build-test g++ -Dbenches="$benches" -Dtorch="$torch" -Dheaders="$headers"
}

# For a stage that is run alone in a new clone.
some_gnu_tree() { [[ -f build-test/build.ninja ]] || gnu_tree; }

build_with_gnu() {
  gnu_tree
  build_tree build-test
}

# In one run: what computes keeps the cores from idling while clusters wait.
test_with_gnu() {
  local left_out=(--no-suite thinned)
  if ! beyond_usual; then left_out+=(--no-suite memif --no-suite veth --no-suite udp); fi
  run_tests build-test "${left_out[@]}" "${side_by_side[@]}"
}

clang_tree() { sanitized_tree build-test-clang clang++ address,undefined; }

test_with_clang() {
  clang_tree
  if beyond_usual; then
    build_tree build-test-clang
    GRADCUBE_SIMULATION_SEEDS=27 run_tests build-test-clang --timeout-multiplier 5 "${side_by_side[@]}"
  else
    run_tests build-test-clang --timeout-multiplier 5 integration_tools
  fi
}

# Without assertions, as what users run.
test_threads() {
  # g++ 12's ThreadSanitizer finds no room for itself where the kernel randomises addresses widely.
  if setarch --addr-no-randomize true 2>/dev/null; then under=(setarch --addr-no-randomize); fi
  sanitized_tree build-test-thread g++ thread -Db_ndebug=true
  run_tests build-test-thread --suite threads --timeout-multiplier 5 "${side_by_side[@]}"
  under=()
}

# clang_tidy [--changed] FOLDER...: those of tests are left out for the time it takes.
clang_tidy() {
  CXX=g++ configure_tree build-tidy -Db_ndebug=false -Dunity=off -Dtorch=disabled
  /usr/bin/python3 scripts/clang_tidy.py build-tidy "$@"
}

tidy_changes() { check clang_tidy --changed "${product[@]}"; }

tidy_everything() { check clang_tidy "${product[@]}"; }

# Each test on each fabric that can run it: what is thinned elsewhere (tests/integration/meson.build).
test_thinned() {
  some_gnu_tree
  run_tests build-test --suite thinned "${side_by_side[@]}"
}

# check_each COMMAND...: counts one for this command with each line of standard input in the place of
# {}, one on each core at a time. By env: xargs does not look for {} in a command's own name.
check_each() {
  cat >"$scratch/each"
  check xargs -a "$scratch/each" -P "$(nproc)" -I '{}' env "$@"
}

test_seeds() {
  some_gnu_tree
  build_tree build-test tests/simulation/simulate:executable
  check_each build-test/tests/simulation/simulate --seeds 2500 --first '{}' < <(seq 1 2500 97501)
}

# What is filtered out of a sanitizer's tests elsewhere, for the time it takes.
test_all_sanitized() {
  local programs=(tests/simulation/simulation_test tests/unit/control/control_test
    tests/unit/bcube_forwarding/bcube_forwarding_test)
  clang_tree
  build_tree build-test-clang "${programs[@]/%/:executable}"
  check_each build-test-clang/'{}' < <(printf '%s\n' "${programs[@]}")
}

# Also each source alone, tests' own, too.
test_clang_release() {
  tree build-test-release clang++ -Db_ndebug=true -Dunity=off
  build_tree build-test-release
  run_tests build-test-release --no-suite integration "${side_by_side[@]}"
}

fuzz_minutes=10
fuzz() {
  sanitized_tree build-fuzz clang++ address,undefined -Dfuzz=true
  local target
  for target in tests/fuzz/*_target.cc; do
    target=$(basename "$target" _target.cc)
    build_tree build-fuzz "tests/fuzz/${target}_"{fuzzer,replay}:executable
    # Without these it does not come behind the first checksum. What it finds comes to them.
    mkdir -p "build-fuzz/corpus/$target"
    "build-fuzz/tests/fuzz/${target}_replay" --write-seeds "build-fuzz/corpus/$target"
    echo "$target" >>"$scratch/fuzzers"
  done
  check_each build-fuzz/tests/fuzz/'{}'_fuzzer build-fuzz/corpus/'{}' \
    -max_total_time=$((fuzz_minutes * 60)) -artifact_prefix=build-fuzz/'{}'- -print_final_stats=1 \
    <"$scratch/fuzzers"
}

# What valgrind can follow: no DPDK, no AVX-512, no pidfd_open, no few descriptors, no operator new
# that counts.
test_under_valgrind() {
  some_gnu_tree
  GTEST_FILTER='-Plan.TakesAsLittleMemory*' run_tests build-test \
    --wrap 'valgrind -q --error-exitcode=1' --timeout-multiplier 60 \
    bcube_forwarding checkpoint hub control merge model
}

# Of a segment, on the path of the release build.
count_instructions() { check ./scripts/bench.sh --check instructions; }

try_limits() {
  some_gnu_tree
  build_tree build-test cli/gradcube:executable dataplane/daemon/gradcubed:executable
  check /usr/bin/python3 scripts/try_limits.py
}

test_packages() {
  check ./scripts/package.sh deb
  check ./scripts/package.sh deb trixie
}

test_image() { check ./scripts/package.sh image; }

test_aarch64() { check ./scripts/package.sh aarch64; }

plant_bugs() { check /usr/bin/python3 scripts/plant_bugs.py; }

# stage SECONDS FUNCTION TITLE: what is to run, and for how long on two cores.
stages=()
names=()
stage() {
  names+=("$2")
  if ((${#only[@]} > 0)) && [[ " ${only[*]} " != *" $2 "* ]]; then return; fi
  steps_expected+=("$1")
  stages+=("$2|$3")
}

# What is cut for the time it takes is whole there.
if deep; then export GRADCUBE_TEST_DEEP=1; fi

to_install=70
if [[ -z $(missing_packages "${packages[@]}") ]]; then to_install=1; fi
stage "$to_install" install_missing "installing what is missing"
stage 6 check_sources "checking format, includes and shell scripts"
stage 300 build_with_gnu "building with g++, warnings as errors"
if beyond_usual; then
  stage 430 test_with_gnu "testing units, the simulation, clusters on all fabrics, PyTorch"
  stage 510 test_with_clang "building with clang++ and its sanitizers, and testing"
  stage 160 test_threads "building and testing with ThreadSanitizer"
  stage 110 tidy_changes "running clang-tidy over what the commits of three hours changed"
else
  stage 250 test_with_gnu "testing units, the simulation, and clusters on the embedded fabric"
  stage 150 test_with_clang "building with clang++ and its sanitizers, and testing a live cluster"
fi
if deep; then
  stage 1500 test_all_sanitized "testing with clang++'s sanitizers what is left out elsewhere"
  stage 1500 tidy_everything "running clang-tidy over all sources"
  stage 2000 test_thinned "running what is thinned elsewhere, each test on each fabric"
  stage 6000 test_seeds "playing 100,000 seeds of the simulation"
  stage 2400 test_clang_release "testing the release build of clang++, each source compiled alone"
  stage $((4 * fuzz_minutes * 60 + 300)) fuzz "fuzzing by libFuzzer"
  stage 3000 test_under_valgrind "running unit tests under valgrind"
  stage 400 count_instructions "counting the instructions of a segment"
  stage 60 try_limits "trying what a host may limit"
  stage 1200 test_packages "making Debian packages, and trying them"
  stage 300 test_image "building a container's image of them, and trying it under limits"
  stage 900 test_aarch64 "building for AArch64, and testing by QEMU"
  stage 1500 plant_bugs "planting bugs that tests must notice"
fi

for one in "${only[@]}"; do
  if [[ " ${names[*]} " == *" $one "* ]]; then continue; fi
  trap - EXIT
  rm -rf "$scratch"
  misuse "\"$one\" is no stage; these are: ${names[*]}"
done

for one in "${stages[@]}"; do
  under_way=${one#*|}
  step "${one%%|*}: $under_way"
  "${one%%|*}"
done
step_done
