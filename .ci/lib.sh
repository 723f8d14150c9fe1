# shellcheck shell=bash
# Shared by .ci/run and .ci/full: stages, builds and their tests, and the last line.  Sourced from the repository's root.
# shellcheck disable=SC2034,SC2086
export CI=true DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
exec </dev/null

work=$PWD/build-ci
logs=$work/logs
passed=0 failed=0 skipped=0

git() { command git -c safe.directory="$PWD" "$@"; } # the checkout may be another user's

begin() {
  rm -rf "$work"
  mkdir -p "$logs" || exit 1
}

# Prints the last line and sets the exit code.
finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" = 0 ]
  exit
}

# ---- stages ----

# outcome WORD NAME DETAIL
outcome() { printf '%-7s %-24s %s\n' "$1" "$2" "$3"; }

# Adds up what meson wrote about a run of tests, and leaves one line about it in $tests.
tests=""
count_tests() {
  local numbers p f s
  numbers=$(python3 - "$1" <<'PYTHON'
import json, sys
count = {"passed": 0, "failed": 0, "skipped": 0}
words = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}
try:
    with open(sys.argv[1], encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.strip():
                count[words.get(json.loads(line)["result"], "failed")] += 1
except (OSError, ValueError):
    pass
print(count["passed"], count["failed"], count["skipped"])
PYTHON
  ) || numbers="0 0 0"
  read -r p f s <<<"$numbers"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  tests="$p passed, $f failed, $s skipped"
  tests_failed=$f tests_total=$((p + f + s))
}

# Sets $processor_seconds to the time of ended children; a subshell would count only its own children.
count_processor_seconds() {
  times >"$logs/times"
  processor_seconds=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$logs/times")
}

# stage NAME [LOG OF TESTS] -- COMMAND ...  The log is what meson writes as JSON; without one the stage is one test.
# Exit code 77 means skipped, for the reason in the last line.
stage() {
  local name=$1 log="" start=$SECONDS used code
  shift
  if [ "$1" != -- ]; then
    log=$1
    shift
    rm -f "$log"
  fi
  shift
  count_processor_seconds
  used=$processor_seconds
  "$@" >"$logs/$name.log" 2>&1
  code=$?
  count_processor_seconds
  used="$((SECONDS - start)) s, $((processor_seconds - used)) s of processors"
  tests="" tests_failed=0 tests_total=0
  [ -n "$log" ] && count_tests "$log"
  if [ $code = 77 ] && [ "$tests_total" = 0 ]; then
    skipped=$((skipped + 1))
    outcome skipped "$name" "$(tail -n 1 "$logs/$name.log")"
  elif [ $code != 0 ]; then
    # A failure outside of any test is counted separately.
    [ "$tests_failed" = 0 ] && failed=$((failed + 1))
    outcome FAILED "$name" "$tests ($used); the end of $logs/$name.log:"
    grep -vE '^ *[0-9]+/[0-9]+ .* (OK|SKIP) |^\[[0-9]+/[0-9]+\] ' "$logs/$name.log" | tail -n 80 | sed 's/^/    /'
  elif [ -n "$log" ] && [ "$tests_total" = 0 ]; then
    failed=$((failed + 1))
    outcome FAILED "$name" "no test ran; see $logs/$name.log"
  else
    [ -z "$log" ] && passed=$((passed + 1))
    outcome ok "$name" "${tests:+$tests }($used)"
    sed -n 's/^devices: /        &/p' "$logs/$name.log"
  fi
  return $code
}

# ---- builds ----

# set_up NAME CC CXX OPTION ...
set_up() { CC=$2 CXX=$3 meson setup "$work/$1" . -Dwerror=true -Drill_tests=enabled "${@:4}"; }

# run_tests NAME ARGUMENT ...
run_tests() { ${launcher-} tests/run_tests.py "$work/$1" --print-errorlogs "${@:2}"; }

# suite NAME CC CXX "TEST ARGUMENTS" OPTION ...: builds everything, without a warning.  Callers exclude the tests of rillcc,
# which do not depend on how the library is built.
suite() { set_up "$1" "$2" "$3" "${@:5}" && ninja -C "$work/$1" all meson-benchmark-prereq && run_tests "$1" $4; }

# few NAME CC CXX PATTERN OPTION ...: runs the tests whose "suite / name" matches, and builds nothing else.
few() {
  local targets names
  set_up "$1" "$2" "$3" "${@:5}" || return
  mapfile -d '' -t targets < <(tests/pick.py targets "$work/$1" "$4")
  mapfile -d '' -t names < <(tests/pick.py names "$work/$1" "$4")
  [ ${#names[@]} != 0 ] || { echo "no test matches $4"; return 1; }
  ninja -C "$work/$1" "${targets[@]}" && run_tests "$1" "${names[@]}"
}

log_of() { echo "$work/$1/meson-logs/testlog${2-}.json"; }

# Options for builds that need some kernels and a vendor, no matter which: both GPU backends are one source.
find_small() {
  local host=cpu
  [ "$(uname -m)" = x86_64 ] && host=cpu:x86-64
  small=(-Drill_backend=cpu "-Drill_targets=$host")
  { command -v hipcc || command -v clang++-19; } >/dev/null &&
    small=(-Drill_backend=hip "-Drill_targets=hip:gfx90a $host")
}

# For sanitizers.  The race detector may fail with too random address layouts.
race_detector=(-Db_sanitize=thread -Db_lundef=false)
sanitizer_environment() {
  launcher="setarch -R"
  $launcher true 2>/dev/null || launcher=""
  export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:intercept_tls_get_addr=0
  export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
  export LSAN_OPTIONS=suppressions=$PWD/tests/vendor_leaks.supp:print_suppressions=0
}

# ---- packages ----

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# install "PACKAGES" "PACKAGES THAT OTHER RELEASES MAY LACK"
install() {
  local missing=() optional=() package
  for package in $1; do is_installed $package || missing+=("$package"); done
  for package in $2; do is_installed $package || optional+=("$package"); done
  [ $((${#missing[@]} + ${#optional[@]})) = 0 ] && return
  apt-get update || return
  for package in "${optional[@]}"; do
    if apt-cache show "$package" >/dev/null 2>&1; then missing+=("$package"); else echo "not here: $package"; fi
  done
  echo "installing ${missing[*]}"
  [ ${#missing[@]} = 0 ] || apt-get install -y --no-install-recommends "${missing[@]}"
}

# The stages between the two leave no file in the checkout that git does not ignore.
note_files() { before=$(git status --porcelain --untracked-files=all); }
check_nothing_left() {
  local left
  left=$(git status --porcelain --untracked-files=all) || return
  [ "$left" = "$before" ] || { diff <(echo "$before") <(echo "$left"); return 1; }
}
