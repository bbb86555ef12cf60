# bash completion for assay. Options stand in one table per command; tests/completions_test.py compares
# them with `assay COMMAND --help`.

_assay_commands='record report diff stat sql doctor load'
_assay_commands='record report export import sql doctor load'

# The options of a command ("" for assay itself).
_assay_options() {
  local target='--pid --name --exe --port --cgroup --no-children'
  case $1 in
    record)
      echo "$target --for --warmup --load --ready --ready-timeout --freq --output -o --overwrite --no-wakeups --per-task --unprivileged --no-source --debuginfod --quiet -q --json --help -h"
      ;;
    report) echo "--format --json --output -o --pid --tid --pool --help -h" ;;
    diff) echo "--vs --per --format --output -o --fail-on --help -h" ;;
    stat) echo "$target --for --interval --per-thread --list --json --help -h" ;;
      echo "$target --for --warmup --freq --output -o --out-dir --overwrite --no-wakeups --per-task --unprivileged --no-source --debuginfod --quiet -q --json --help -h"
      ;;
    report) echo "--format --json --output -o --pid --tid --pool --help -h" ;;
    export) echo "--format --output -o --metric --process --thread --from --to --focus --ignore --by --inverted --icicle --base --title --split --help -h" ;;
    import) echo "--output -o --format --unit --freq --overwrite --no-names --quiet -q --help -h" ;;
    sql) echo "--format --json --help -h" ;;
    doctor) echo "$target --json --help -h" ;;
    load)
      echo "--connections -c --streams -m --requests -n --for --warmup --rate --timeout --threads --method -X --header -H --data -d --data-file --data-hex --proto --proto-path --http2 --insecure --cacert --seed --quiet -q --json --help -h"
      ;;
    *) echo "--help -h --version" ;;
  esac
}

# Candidates for the value of an option; fails when the option takes none.
_assay_value() {
  case $1 in
    --pid) _assay_reply "$(cd /proc && echo [0-9]*)" ;;
    --name) _assay_reply "$(cat /proc/[0-9]*/comm 2>/dev/null | sort -u | tr '\n' ' ')" ;;
    --port) _assay_reply "$(_assay_listening_ports)" ;;
    --for | --interval | --warmup | --timeout) _assay_reply '10s 30s 1m 5m' ;;
    --for | --warmup | --timeout | --ready-timeout) _assay_reply '10s 30s 1m 5m' ;;
    --method | -X) _assay_reply 'GET HEAD POST PUT PATCH DELETE OPTIONS' ;;
    --per) _assay_reply 'request second share' ;;
    --vs) COMPREPLY=($(compgen -f -X '!*.assay' -- "$_assay_word")) ;;
    --freq) _assay_reply '49 99 199 499 999' ;;
    --format) _assay_formats ;;
    --metric) _assay_reply 'cpu off wall lock runqueue samples waits' ;;
    --by) _assay_reply 'none process pool thread' ;;
    --split) _assay_reply 'process' ;;
    --unit) _assay_reply 'samples ns us ms' ;;
    --from | --to) _assay_reply '1s 5s 10s' ;;
    --process | --thread | --focus | --ignore | --title) COMPREPLY=() ;;
    --base) COMPREPLY=($(compgen -f -X '!*.assay' -- "$_assay_word")) && compopt -o filenames 2>/dev/null ;;
    --out-dir) COMPREPLY=($(compgen -d -- "$_assay_word")) && compopt -o filenames 2>/dev/null ;;
    --exe | --output | -o | --data-file | --cacert | --proto) COMPREPLY=($(compgen -f -- "$_assay_word")) && compopt -o filenames 2>/dev/null ;;
    --proto-path) COMPREPLY=($(compgen -d -- "$_assay_word")) && compopt -o filenames 2>/dev/null ;;
    --cgroup) COMPREPLY=($(compgen -d -- "${_assay_word:-/sys/fs/cgroup/}")) && compopt -o filenames 2>/dev/null ;;
    *) return 1 ;;
  esac
  return 0
}

_assay_formats() {
  case $(_assay_command) in
    sql) _assay_reply 'table tsv json' ;;
    export) _assay_reply 'pprof folded svg speedscope firefox perf-script collapsed-by-second csv tsv' ;;
    import) _assay_reply 'perf.data perf-script pprof gperftools-cpu gperftools-heap folded speedscope' ;;
    *) _assay_reply 'text md json' ;;
  esac
}

_assay_reply() { COMPREPLY=($(compgen -W "$1" -- "$_assay_word")); }

_assay_listening_ports() {
  local _ address state hex
  while read -r _ address _ state _; do
    [[ $state == 0A ]] || continue
    hex=${address##*:}
    echo $((16#$hex))
  done < <(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null) | sort -un | tr '\n' ' '
}

# The command on the line so far: the first word after assay that is one.
_assay_command() {
  local word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ " $_assay_commands " == *" $word "* ]] && { echo "$word"; return; }
  done
}

_assay() {
  local _assay_word=${COMP_WORDS[COMP_CWORD]} command i
  COMPREPLY=()
  command=$(_assay_command)

  # After `--` comes the command to launch: complete programs, then files.
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      if ((i == COMP_CWORD - 1)); then
        COMPREPLY=($(compgen -c -- "$_assay_word"))
      else
        COMPREPLY=($(compgen -f -- "$_assay_word"))
      fi
      return
    fi
  done

  _assay_value "${COMP_WORDS[COMP_CWORD - 1]}" && return
  if [[ $_assay_word == -* ]]; then
    _assay_reply "$(_assay_options "$command")"
  elif [[ -z $command ]]; then
    _assay_reply "$_assay_commands"
  elif [[ $command == import ]]; then
    COMPREPLY=($(compgen -f -- "$_assay_word")) && compopt -o filenames 2>/dev/null
  elif [[ $command == report || $command == sql || $command == export ]]; then
    COMPREPLY=($(compgen -f -X '!*.assay' -- "$_assay_word") $(compgen -d -- "$_assay_word"))
    compopt -o filenames 2>/dev/null
  else
    _assay_reply "$(_assay_options "$command")"
  fi
}

complete -F _assay assay
