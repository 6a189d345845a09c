// Which kernels TVM's runtime launches, and when each one ran.
#pragma once

#include "text.h"

/// Keeps from now on every launch of a kernel; says in how many places launches are seen. Later calls change nothing.
int watch_kernels(void);

/// Adds JSON of the launches since the last call, oldest first, and forgets them:
/// {"launches": [{"kernel": name, "global": [3 numbers], "local": [3 numbers], "queued": ns, "submit": ns, "start": ns,
/// "end": ns}, ...], "untimed": how many went to a queue without profiling, "dropped": how many there was no room for}.
/// Times are the device's own. Wait for the queue first: a kernel that still runs is untimed.
void tell_launches(Text* json);
