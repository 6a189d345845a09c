"""Finding better schedules: candidates are built, judged against LLVM, timed on the device, and the best are kept."""
