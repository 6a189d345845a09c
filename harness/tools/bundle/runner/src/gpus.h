// NVIDIA's GPUs of this machine, as their driver's management library tells of them (NVML, API Reference).
#pragma once

#include "text.h"

/// Lines of a word and a value, those of each GPU after its name; nothing on a machine without the library.
void describe_gpus(Text* text);
