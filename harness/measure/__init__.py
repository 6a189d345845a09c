"""One case from plan to record: run, judged right or wrong, timed, and written down."""
