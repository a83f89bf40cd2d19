# Runs examples, whose output must be what is written beside them, and tests, which count for themselves. The last line
# sums. Called by the Makefile: OUT CASES EXAMPLES "example ..." "test ..."; RUNNER comes before each program.
out=$1 cases=$2 examples=$3
passed=0 failed=0

for example in $4; do
    if printed=$($RUNNER "$out/$example") && [ "$printed" = "$(cat "$examples/$example.expected")" ]; then
        echo "example $example ... ok"
        passed=$((passed + 1))
    else
        echo "example $example ... FAILED; it printed:"
        echo "$printed"
        failed=$((failed + 1))
    fi
done

for test in $5; do
    printed=$($RUNNER "$out/$test" "$cases") && held=1 || held=0
    echo "$printed"
    count=$(echo "$printed" | tail -n 1)
    case $count in
    *" passed, "*" failed")
        passed=$((passed + ${count%% *}))
        count=${count#* passed, }
        count=${count%% *}
        ;;
    *) count=0 ;;
    esac
    # One that failed without a failed test was ended, or had a finding of the runner's.
    [ "$held" = 1 ] || [ "$count" != 0 ] || count=1
    failed=$((failed + count))
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
