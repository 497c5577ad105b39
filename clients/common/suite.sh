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

# Makes and prints the place of what a suite installs or builds.
cache_of() {
  local place=${SEMEL_CACHE:-${CARGO_TARGET_DIR:-$root/target}/clients}/$1
  mkdir -p "$place"
  (cd "$place" && pwd)
}

cache=$(cache_of "$suite")
export PEER=${PEER:-semel}

# Ends the suite with 77 (not run) where a tool of its toolchain is missing.
need() {
  for tool in "$@"; do
    command -v "$tool" >/dev/null || { echo "$suite: not run, $tool is missing"; exit 77; }
  done
}

# Installs and builds what the suite $1 needs, by its script `prepare`.
prepare() (
  here=$root/clients/$1 cache=$(cache_of "$1")
  # shellcheck source=/dev/null
  . "$here/prepare"
)

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
is_gone() { ! kill -0 "$1" 2>/dev/null; }
# server_ready PID PORT LOG: it serves, or it has ended and there is nothing to wait for.
server_ready() { is_gone "$1" || { port_open "$2" && grep -q ready "$3"; }; }
relay_ready() { is_gone "$1" || grep -q listening "$work/relay.log"; }

free_port() {
  local candidate
  while true; do
    candidate=$((20000 + RANDOM % 12000))
    port_open "$candidate" || { echo "$candidate"; return; }
  done
}

# One line of the suite, shown and kept for the count.
say() { echo "$@" | tee -a "$work/lines"; }

# start_server NAME PORT [OPTION ...]
start_server() {
  local name=$1 port=$2
  shift 2
  "$SEMEL_BIN" serve --data-dir "$work/$name" --listen "127.0.0.1:$port" "$@" >"$work/$name.log" 2>&1 &
  servers+=($!)
  if ! await 30 server_ready $! "$port" "$work/$name.log" || is_gone $!; then
    say "FAILED server_starts: $name is not ready within 30 s"
    return 1
  fi
}

# start_relay LISTEN_PORT TARGET_PORT: what goes through it loses answers; see relay.py. A suite without checks behind
# it sets without_relay.
start_relay() {
  [ -z "${without_relay:-}" ] || return 0
  command -v python3 >/dev/null || return 0
  python3 -B "$root/clients/common/relay.py" "$1" "$2" >"$work/relay.log" 2>&1 &
  relay=$!
  if ! await 10 relay_ready "$relay" || is_gone "$relay"; then
    say "FAILED relay_starts: $(cat "$work/relay.log")"
    return 1
  fi
  export RELAYED=127.0.0.1:$1
}

# The checks behind the relay prove nothing if it did no harm.
stop_relay() {
  [ -n "$relay" ] || return 0
  kill -TERM "$relay"
  wait "$relay" || true
  local lost
  lost=$(sed -n 's/^lost //p' "$work/relay.log")
  if [ "${lost:-0}" -gt 0 ]; then say "ok relay_lost_answers ($lost)"; else say "FAILED relay_lost_answers: none"; fi
}

# SIGTERM must end a server with 0 within five seconds.
stop_servers() {
  local status=0 pid
  for pid in "${servers[@]}"; do
    kill -TERM "$pid" || true
    await 5 is_gone "$pid" || { say "FAILED server_stops: still there 5 s after SIGTERM"; return; }
    wait "$pid" || status=$?
  done
  if [ "$status" = 0 ]; then say "ok server_stops"; else say "FAILED server_stops: exit status $status"; fi
}

# The limit only ends a suite that hangs; each is meant to take less than a minute, or says another limit.
run_checks() {
  local status=0
  timeout "${limit_s:-240}" "$@" 2>&1 | tee -a "$work/lines" || status=$?
  [ "$status" = 0 ] || say "FAILED suite_ends: the program ended with status $status"
}

# What a suite starts besides; it may say otherwise.
more_servers() { :; }

# Two servers: clients follow the address that a broker advertises, so one behind a relay has to advertise the relay.
against_semel() {
  local direct behind relayed
  direct=$(free_port) behind=$(free_port) relayed=$(free_port)
  # Producers fall silent for longer than this in one check.
  if start_server server "$direct" --set producer.id.expiration.ms=1500 &&
    start_server relayed-server "$behind" --advertise "127.0.0.1:$relayed" &&
    more_servers && start_relay "$relayed" "$behind"; then
    export BOOTSTRAP=127.0.0.1:$direct
    run_checks "$@"
    stop_relay
    stop_servers
  fi
  if grep -q '^FAILED' "$work/lines"; then
    echo "last lines of the servers' logs:"
    tail -n 20 "$work"/*server.log
  fi
}

# bench/peers/kafka opens a second listener for the relay.
against_running() {
  local port=${BOOTSTRAP##*:}
  if [ "$PEER" = kafka ] && port_open $((port + 2)); then start_relay $((port + 3)) $((port + 2)) || return 0; fi
  run_checks "$@"
  stop_relay
}

end_processes() {
  local pid
  for pid in $relay "${servers[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}

count() { grep -c "^$1 " "$work/lines" || true; }

# Runs the suite's program against the broker and ends the script: 0 if at least one check passed and none failed.
judge() {
  [ -n "${BOOTSTRAP:-}${SEMEL_BIN:-}" ] || { echo "$suite: set SEMEL_BIN or BOOTSTRAP" >&2; exit 2; }
  work=$(mktemp -d)
  servers=() relay=
  # No server must outlive the suite, however that ends.
  trap end_processes EXIT
  touch "$work/lines"
  if [ -n "${BOOTSTRAP:-}" ]; then against_running "$@"; else against_semel "$@"; fi
  conclude
}

# The same for a program that starts its own brokers, to kill them: SEMEL_BIN, or PEER=kafka for Apache Kafka.
judge_killer() {
  [ "$PEER" = kafka ] || [ -n "${SEMEL_BIN:-}" ] || { echo "$suite: set SEMEL_BIN, or PEER=kafka" >&2; exit 2; }
  work=$(mktemp -d)
  servers=() relay=
  trap end_processes EXIT
  touch "$work/lines"
  run_checks "$@"
  conclude
}

conclude() {
  echo "$(count ok) passed, $(count FAILED) failed, $(count skipped) skipped"
  [ "$(count ok)" -gt 0 ] && [ "$(count FAILED)" = 0 ]
}
