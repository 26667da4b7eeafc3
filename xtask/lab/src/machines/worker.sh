# Runs the tests of a plan, and tells the serial line of each. The first process of a guest reads
# this, and sets:
# PLAN (the list), TESTS (where the programs are), RUN (a directory for notes), LAUNCH (what runs a
# program, if the kernel alone does not), WORKERS (how many tests run at once).

# Says what each thread of a session does.
threads() {
    for process in /proc/[0-9]*; do
        [ "$(sed 's/.*) //' $process/stat 2>/dev/null | cut -d ' ' -f 4)" = "$1" ] || continue
        for task in $process/task/*; do
            ran=$(sed 's/.*) //' $task/stat | cut -d ' ' -f 1,12,13,37)
            echo "thread ${task##*/} ($(cat $task/comm)): state, ticks in user and kernel, CPU: $ran"
            echo "    call: $(cat $task/syscall)"
            grep -m 6 . $task/stack
        done
    done
}

# Says what the threads of a test do half a minute before the test is killed.
overseer() {
    while sleep 10; do
        now=$(cut -d . -f 1 /proc/uptime)
        for file in $RUN/now.*; do
            { read -r pid by <$file; } 2>/dev/null || continue
            if [ "$now" -gt "$by" ]; then
                threads "$pid" >>"$RUN/out.${file##*.}" 2>/dev/null
                rm $file
            fi
        done
    done
}

# Runs one test after the other, each in a session of its own, which ends with it.
worker() {
    nth=0
    # A file that can be made once only says who has taken a test.
    set -C
    while read -r limit directory program test; do
        nth=$((nth + 1))
        { true >$RUN/taken.$nth; } 2>/dev/null || continue
        echo "@start $1 $program $test"
        cd "$directory"
        CARGO_MANIFEST_DIR=$directory setsid timeout -s KILL "$limit" \
            $LAUNCH "$TESTS/$program" --exact $test --test-threads=1 --nocapture >|"$RUN/out.$1" 2>&1 </dev/null &
        pid=$!
        echo "$pid $(($(cut -d . -f 1 /proc/uptime) + limit - 30))" >|"$RUN/now.$1"
        wait $pid
        code=$?
        kill -KILL -$pid 2>/dev/null
        rm -f "$RUN/now.$1"
        if [ $code = 0 ]; then
            # Behind the name of the test, with which libtest begins the line.
            grep -o 'not tested:.*' "$RUN/out.$1"
        else
            tail -n 120 "$RUN/out.$1"
        fi | while IFS= read -r line; do echo "@out $1 $line"; done
        echo "@end $1 $code"
    done <"$PLAN"
}

# Runs them all.
run() {
    overseer >/dev/null &
    overseer=$!
    workers=
    nth=0
    while [ $nth -lt "$WORKERS" ]; do
        worker $nth &
        workers="$workers $!"
        nth=$((nth + 1))
    done
    wait $workers
    kill $overseer
}
