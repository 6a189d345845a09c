"""Where models come from: the zoo, and a user's own `.onnx` file. One file per source."""
