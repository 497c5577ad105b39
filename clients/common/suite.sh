# Shared by every clients/NAME/run: the cache, the server under test, the count of checks. Sourced by bash, not run.
#
# A suite's program prints one line per check: "ok NAME", "FAILED NAME: reason" or "skipped NAME: reason". `judge` runs
# it against a broker, adds the check that the server stops cleanly, counts the lines and prints the closing line.
#
#   SEMEL_BIN    path of the binary `semel`; judge starts and stops a server of its own, with default settings
#   BOOTSTRAP    instead: host:port of a broker that already runs
#   PEER=kafka   that broker is Apache Kafka: expectations that are deliberately stricter are skipped, with the reason
#   SEMEL_CACHE  where installed packages and build results go; never inside the tree
set -euo pipefail

suite=$(basename "$(cd "$(dirname "$0")" && pwd)")
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${SEMEL_CACHE:-${CARGO_TARGET_DIR:-$root/target}/clients}/$suite
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
export PEER=${PEER:-semel}

# Ends the suite with 77 (not run) where a tool of its toolchain is missing.
need() {
  for tool in "$@"; do
    command -v "$tool" >/dev/null || { echo "$suite: not run, $tool is missing"; exit 77; }
  done
}

# Waits at most $1 seconds until the command behind it succeeds.
await() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.05
  done
}

port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
server_gone() { ! kill -0 "$server" 2>/dev/null; }
server_ready() { server_gone || { port_open "$port" && grep -q ready "$work/server.log"; }; }

free_port() {
  local candidate
  while true; do
    candidate=$((20000 + RANDOM % 12000))
    port_open "$candidate" || { echo "$candidate"; return; }
  done
}

# One line of the suite, shown and kept for the count.
say() { echo "$@" | tee -a "$work/lines"; }

start_server() {
  port=$(free_port)
  "$SEMEL_BIN" serve --data-dir "$work/data" --listen "127.0.0.1:$port" >"$work/server.log" 2>&1 &
  server=$!
  if ! await 30 server_ready || server_gone; then
    say "FAILED server_starts: not ready within 30 s"
    return 1
  fi
  export BOOTSTRAP=127.0.0.1:$port
}

# SIGTERM must end the server with 0 within five seconds.
stop_server() {
  local status=0
  kill -TERM "$server" || true
  if ! await 5 server_gone; then
    say "FAILED server_stops: still there 5 s after SIGTERM"
    return
  fi
  wait "$server" || status=$?
  if [ "$status" = 0 ]; then say "ok server_stops"; else say "FAILED server_stops: exit status $status"; fi
}

# The limit only ends a suite that hangs; each is meant to take less than a minute.
run_checks() {
  local status=0
  timeout 150 "$@" 2>&1 | tee -a "$work/lines" || status=$?
  [ "$status" = 0 ] || say "FAILED suite_ends: the program ended with status $status"
}

against_own_server() {
  if start_server; then
    run_checks "$@"
    stop_server
  fi
  if grep -q '^FAILED' "$work/lines"; then
    echo "last lines of the server's log:"
    tail -n 20 "$work/server.log"
  fi
}

count() { grep -c "^$1 " "$work/lines" || true; }

# Runs the suite's program against the broker and ends the script: 0 if at least one check passed and none failed.
judge() {
  [ -n "${BOOTSTRAP:-}${SEMEL_BIN:-}" ] || { echo "$suite: set SEMEL_BIN or BOOTSTRAP" >&2; exit 2; }
  work=$(mktemp -d)
  server=
  # The server must not outlive the suite, however that ends.
  trap '[ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
  if [ -n "${BOOTSTRAP:-}" ]; then run_checks "$@"; else against_own_server "$@"; fi
  echo "$(count ok) passed, $(count FAILED) failed, $(count skipped) skipped"
  [ "$(count ok)" -gt 0 ] && [ "$(count FAILED)" = 0 ]
}
