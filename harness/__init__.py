"""The host: what to build, building it, judging it. Knows nothing of adb."""
