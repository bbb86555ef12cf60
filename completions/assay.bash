# bash completion for assay. Options stand in one table per command; tests/completions_test.py compares
# them with `assay COMMAND --help`.

_assay_commands='record report diff sql doctor load'

# The options of a command ("" for assay itself).
_assay_options() {
  local target='--pid --name --exe --port --cgroup --no-children'
  case $1 in
    record)
      echo "$target --for --warmup --freq --output -o --overwrite --backend --no-wakeups --per-task --unprivileged --no-source --debuginfod --quiet -q --json --help -h"
      ;;
    report) echo "--format --json --output -o --pid --tid --pool --help -h" ;;
    diff) echo "--vs --per --format --output -o --fail-on --help -h" ;;
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
    --for | --warmup | --timeout) _assay_reply '10s 30s 1m 5m' ;;
    --method | -X) _assay_reply 'GET HEAD POST PUT PATCH DELETE OPTIONS' ;;
    --backend) _assay_reply 'auto bpf perf' ;;
    --per) _assay_reply 'request second share' ;;
    --vs) COMPREPLY=($(compgen -f -X '!*.assay' -- "$_assay_word")) ;;
    --freq) _assay_reply '49 99 199 499 999' ;;
    --format) _assay_formats ;;
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
  elif [[ $command == report || $command == sql ]]; then
    COMPREPLY=($(compgen -f -X '!*.assay' -- "$_assay_word") $(compgen -d -- "$_assay_word"))
    compopt -o filenames 2>/dev/null
  else
    _assay_reply "$(_assay_options "$command")"
  fi
}

complete -F _assay assay
