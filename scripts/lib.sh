# shellcheck shell=bash
# What the scripts share: messages, steps with timings, packages, the build. Sourced, never run.
# Expects `set -euo pipefail` in the script that sources it.

source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Python packages come from the distribution, so the distribution's python3 and meson must be the
# ones that are found, whatever else the user's PATH holds.
export PATH="/usr/bin:$PATH"

# What each script installs; python3-torch alone is most of a download, so none takes it in vain.
# shellcheck disable=SC2034  # used by the scripts that source this file
{
  build_packages=(
    meson ninja-build g++ pkg-config
    libdpdk-dev libipsec-mb-dev libisal-dev libcli11-dev libtomlplusplus-dev libxxhash-dev libfmt-dev libspdlog-dev
    libnuma-dev libssl-dev nlohmann-json3-dev
  )
  training_packages=(python3 python3-numpy)
  torch_packages=(python3-torch python3-sklearn python3-matplotlib libtorch-dev pybind11-dev)
  test_packages=(ccache clang libclang-rt-dev libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev
    clang-format clang-tidy pyflakes3 shellcheck iproute2 abigail-tools openssh-client openssh-server)
  bench_packages=(python3 libbenchmark-dev openmpi-bin libopenmpi-dev libgloo-dev iproute2
    dpdk-dev valgrind)
}

if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
else
  bold='' red='' green='' plain=''
fi

die() {
  printf '%s%s: %s%s\n' "$red" "$(basename "$0")" "$*" "$plain" >&2
  exit 1
}

# A wrong command line: what is wrong with it, and where to read more.
misuse() {
  printf '%s%s: %s%s\n' "$red" "$(basename "$0")" "$*" "$plain" >&2
  printf '%s --help tells what is accepted\n' "$0" >&2
  exit 2
}

# Steps. `expect 60 180 5` (or what fills steps_expected) says how many seconds each takes on two
# cores; then `step "building"` comes before each one, and `step_done` after the last.
steps_expected=()
steps_begun=0
step_started=0 # nanoseconds; 0: none is under way

expect() { steps_expected=("$@"); }

# roughly SECONDS: as people say it.
roughly() {
  if (($1 < 10)); then
    echo "seconds"
  elif (($1 < 100)); then
    echo "about $((($1 + 5) / 10 * 10)) s"
  else
    echo "about $((($1 + 30) / 60)) min"
  fi
}

# What steps from this one on take, by what is expected.
seconds_to_come() {
  local sum=0 i
  for ((i = $1; i < ${#steps_expected[@]}; ++i)); do sum=$((sum + steps_expected[i])); done
  echo "$sum"
}

step_done() {
  if ((step_started > 0)); then
    local tenths=$((($(date +%s%N) - step_started) / 100000000))
    printf '%s      done in %d.%d s%s\n' "$green" $((tenths / 10)) $((tenths % 10)) "$plain"
  fi
  step_started=0
}

step() {
  step_done
  local takes to_come=''
  takes=$(roughly "${steps_expected[steps_begun]}")
  steps_begun=$((steps_begun + 1))
  if ((steps_begun < ${#steps_expected[@]})); then
    to_come="; then $(roughly "$(seconds_to_come "$steps_begun")") to come"
  fi
  step_started=$(date +%s%N)
  printf '%s[%d/%d] %s%s (%s%s)\n' "$bold" "$steps_begun" "${#steps_expected[@]}" "$*" "$plain" \
    "$takes" "$to_come"
}

# attended COMMAND...: runs it in a process group of its own, so that a signal to this script is acted
# on at once, and end_attended() ends the command with what it has started. (Daemons leave the group.)
attended_group=0
attended() {
  set -m
  "$@" </dev/null &
  attended_group=$!
  set +m
  local code=0
  wait "$attended_group" || code=$?
  attended_group=0
  return "$code"
}

# attended_into FILE COMMAND...: its output goes there. A redirection of attended() itself would take
# what the script says when a signal ends it meanwhile, too.
attended_into() {
  attended write_into "$@"
}
write_into() {
  local file=$1
  shift
  "$@" >"$file" 2>&1
}

# SIGTERM, and SIGKILL for what is there later.
tenths_to_end=100
end_attended() {
  ((attended_group > 0)) || return 0
  local group=$attended_group i
  attended_group=0
  kill -TERM -- "-$group" 2>/dev/null || return 0
  for ((i = 0; i < tenths_to_end; ++i)); do
    kill -0 -- "-$group" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL -- "-$group" 2>/dev/null || true
}

missing_packages() {
  local package
  for package in "$@"; do
    if [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
      printf '%s\n' "$package"
    fi
  done
}

# Installs what is missing, and touches neither the network nor root's rights when nothing is.
install_packages() {
  command -v dpkg-query >/dev/null ||
    die "this is not a Debian system; install the equivalents of: $*"
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if ((${#missing[@]} == 0)); then
    echo "      all $# packages are installed"
    return
  fi
  echo "      installing: ${missing[*]}"
  local root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      die "packages are missing and only root can install them; run as root:" \
        "apt-get install --no-install-recommends ${missing[*]}"
    root=(sudo)
  fi
  local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q
    -o 'DPkg::Lock::Timeout=300' -o 'Dpkg::Use-Pty=0')
  # Not attended: sudo may have to ask the terminal for a password.
  "${apt[@]}" update ||
    die "apt-get update failed; check the network and /etc/apt/sources.list, then run this again"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" ||
    die "these packages could not be installed: ${missing[*]}"
}

# configure_tree DIRECTORY [MESON OPTION...]: for the first time, or again with these options.
configure_tree() {
  local directory=$1 file descriptor log code=0
  shift
  [[ -w $source_root ]] || die "$source_root cannot be written to: builds lie in it"
  # Gone at once, so that an interrupt leaves nothing.
  file=$(mktemp)
  exec {descriptor}<>"$file"
  rm -f "$file"
  log=/dev/fd/$descriptor
  if [[ ! -f $directory/build.ninja ]]; then
    attended_into "$log" meson setup "$directory" "$source_root" "$@" || code=$?
  elif ! attended_into "$log" meson setup --reconfigure "$directory" "$source_root" "$@"; then
    # Left by another meson or another place of the sources: begin again, if it can be begun.
    attended_into "$log" meson setup "$directory-anew" "$source_root" "$@" || code=$?
    rm -rf "$directory-anew"
    if ((code == 0)); then
      attended_into "$log" meson setup --wipe "$directory" "$source_root" "$@" || code=$?
    fi
  fi
  local said
  said=$(<"$log")
  exec {descriptor}>&-
  ((code == 0)) || die "meson setup failed. By hand: meson setup $directory-by-hand $*"$'\n'"$said"
}

# build_tree DIRECTORY [TARGET...]: builds these targets (as `meson compile` names them), or
# everything.
build_tree() {
  local directory=$1
  shift
  attended meson compile -C "$directory" -j "$(nproc)" "$@" ||
    die "the build failed; its messages are above. By hand: meson compile -C $directory $*"
}
