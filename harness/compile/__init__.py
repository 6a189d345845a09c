"""From a model to a library: models, paths, defects of TVM, artifacts, the truth, tuned schedules."""
