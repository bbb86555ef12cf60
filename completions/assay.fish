# fish completion for assay. Options stand in one block per command; tests/completions_test.py compares
# them with `assay COMMAND --help`.

function __assay_ports
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -l _number address _remote state _rest
        test "$state" = 0A; and math 0x(string split -r -m 1 : -- $address)[2]
    end | sort -un
end

function __assay_target -a command
    complete -c assay -n "__fish_seen_subcommand_from $command" -l pid -x -a '(__fish_complete_pids)' -d 'process id'
    complete -c assay -n "__fish_seen_subcommand_from $command" -l name -x -a '(cat /proc/*/comm 2>/dev/null | sort -u)' -d 'thread or program name'
    complete -c assay -n "__fish_seen_subcommand_from $command" -l exe -r -F -d 'program file'
    complete -c assay -n "__fish_seen_subcommand_from $command" -l port -x -a '(__assay_ports)' -d 'port that it listens on'
    complete -c assay -n "__fish_seen_subcommand_from $command" -l cgroup -x -a '(__fish_complete_directories)' -d 'control group'
    complete -c assay -n "__fish_seen_subcommand_from $command" -l no-children -d 'leave child processes out'
end

set -l commands record report diff sql doctor load

complete -c assay -f
complete -c assay -s h -l help -d 'show help'
complete -c assay -n "not __fish_seen_subcommand_from $commands" -l version -d 'show the version'
complete -c assay -n "not __fish_seen_subcommand_from $commands" -a record -d 'capture a server, on-CPU and off-CPU, into one run file'
complete -c assay -n "not __fish_seen_subcommand_from $commands" -a report -d 'say what a run shows'
complete -c assay -n "not __fish_seen_subcommand_from $commands" -a diff -d 'say what changed between runs'
complete -c assay -n "not __fish_seen_subcommand_from $commands" -a sql -d 'query a run'
complete -c assay -n "not __fish_seen_subcommand_from $commands" -a doctor -d 'say what this machine allows, and how to allow more'
complete -c assay -n "not __fish_seen_subcommand_from $commands" -a load -d 'drive load at a server and measure its answers'

# record
__assay_target record
complete -c assay -n '__fish_seen_subcommand_from record' -l for -x -a '10s 30s 1m 5m' -d 'how long'
complete -c assay -n '__fish_seen_subcommand_from record' -l warmup -x -a '1s 3s 10s' -d 'wait before the capture begins'
complete -c assay -n '__fish_seen_subcommand_from record' -l freq -x -a '49 99 199 499 999' -d 'samples per second and CPU'
complete -c assay -n '__fish_seen_subcommand_from record' -s o -l output -r -F -d 'run file'
complete -c assay -n '__fish_seen_subcommand_from record' -l overwrite -d 'replace an existing run'
complete -c assay -n '__fish_seen_subcommand_from record' -l backend -x -a 'auto bpf perf' -d 'how events are recorded'
complete -c assay -n '__fish_seen_subcommand_from record' -l no-wakeups -d 'do not trace wake-ups'
complete -c assay -n '__fish_seen_subcommand_from record' -l per-task -d 'follow threads instead of all CPUs'
complete -c assay -n '__fish_seen_subcommand_from record' -l unprivileged -d 'capture as an ordinary user would'
complete -c assay -n '__fish_seen_subcommand_from record' -l no-source -d 'keep no source text in the run file'
complete -c assay -n '__fish_seen_subcommand_from record' -l debuginfod -d 'fetch missing debug files from DEBUGINFOD_URLS'
complete -c assay -n '__fish_seen_subcommand_from record' -s q -l quiet -d 'no progress and no report'
complete -c assay -n '__fish_seen_subcommand_from record' -l json -d 'the report as JSON'

# report
complete -c assay -n '__fish_seen_subcommand_from report' -l format -x -a 'text md json' -d 'form of the report'
complete -c assay -n '__fish_seen_subcommand_from report' -s o -l output -r -F -d 'write to a file'
complete -c assay -n '__fish_seen_subcommand_from report' -l json -d 'as --format json'
complete -c assay -n '__fish_seen_subcommand_from report' -l pid -x -d 'only these processes'
complete -c assay -n '__fish_seen_subcommand_from report' -l tid -x -d 'only these threads'
complete -c assay -n '__fish_seen_subcommand_from report' -l pool -x -d 'only these thread pools'
complete -c assay -n '__fish_seen_subcommand_from report' -k -a '(__fish_complete_suffix .assay)'

# diff
complete -c assay -n '__fish_seen_subcommand_from diff' -l vs -r -F -d 'runs to compare'
complete -c assay -n '__fish_seen_subcommand_from diff' -l per -x -a 'request second share' -d 'unit'
complete -c assay -n '__fish_seen_subcommand_from diff' -l format -x -a 'text md json' -d 'form of the comparison'
complete -c assay -n '__fish_seen_subcommand_from diff' -s o -l output -r -F -d 'write to a file'
complete -c assay -n '__fish_seen_subcommand_from diff' -l fail-on -x -d 'exit 3 beyond this'
complete -c assay -n '__fish_seen_subcommand_from diff' -k -a '(__fish_complete_suffix .assay)'

# sql
complete -c assay -n '__fish_seen_subcommand_from sql' -l format -x -a 'table tsv json' -d 'form of the rows'
complete -c assay -n '__fish_seen_subcommand_from sql' -l json -d 'as --format json'
complete -c assay -n '__fish_seen_subcommand_from sql' -k -a '(__fish_complete_suffix .assay)'

# doctor
__assay_target doctor
complete -c assay -n '__fish_seen_subcommand_from doctor' -l json -d 'results as JSON'

# load
complete -c assay -n '__fish_seen_subcommand_from load' -s c -l connections -x -a '1 8 50 100' -d 'connections'
complete -c assay -n '__fish_seen_subcommand_from load' -s m -l streams -x -a '1 10 100' -d 'requests at a time per connection'
complete -c assay -n '__fish_seen_subcommand_from load' -s n -l requests -x -d 'requests per client'
complete -c assay -n '__fish_seen_subcommand_from load' -l for -x -a '10s 30s 1m 5m' -d 'how long'
complete -c assay -n '__fish_seen_subcommand_from load' -l warmup -x -a '1s 3s 10s' -d 'load first, uncounted'
complete -c assay -n '__fish_seen_subcommand_from load' -l rate -x -d 'open loop, requests per second'
complete -c assay -n '__fish_seen_subcommand_from load' -l timeout -x -a '1s 10s' -d 'longest wait for an answer'
complete -c assay -n '__fish_seen_subcommand_from load' -l threads -x -a '1 2 4' -d 'threads that drive load'
complete -c assay -n '__fish_seen_subcommand_from load' -s X -l method -x -a 'GET HEAD POST PUT PATCH DELETE OPTIONS' -d 'method'
complete -c assay -n '__fish_seen_subcommand_from load' -s H -l header -x -d 'header'
complete -c assay -n '__fish_seen_subcommand_from load' -s d -l data -x -d 'body or gRPC message as JSON'
complete -c assay -n '__fish_seen_subcommand_from load' -l data-file -r -F -d 'body byte for byte'
complete -c assay -n '__fish_seen_subcommand_from load' -l data-hex -x -d 'body in hex digits'
complete -c assay -n '__fish_seen_subcommand_from load' -l proto -r -F -d 'describes the gRPC method'
complete -c assay -n '__fish_seen_subcommand_from load' -l proto-path -r -F -d 'where its imports are'
complete -c assay -n '__fish_seen_subcommand_from load' -l http2 -d 'HTTP/2'
complete -c assay -n '__fish_seen_subcommand_from load' -l insecure -d 'take any certificate'
complete -c assay -n '__fish_seen_subcommand_from load' -l cacert -r -F -d 'certificates to trust'
complete -c assay -n '__fish_seen_subcommand_from load' -l seed -x -d 'of the random places'
complete -c assay -n '__fish_seen_subcommand_from load' -s q -l quiet -d 'no progress, no table of seconds'
complete -c assay -n '__fish_seen_subcommand_from load' -l json -d 'the result as JSON'
