// What is done in a process of its own: it tells each thing as soon as it is known, and ends with its first error.
#pragma once

#include "case.h"

/// `WHO` and `PEAKS` ask the device. `TUNE` makes what a tuned case needs, `COMPILE_REFERENCE` and `FIND_TURNS` what the
/// reference kernel needs, `TURN` runs the case and times it if it is right.
typedef enum { WHO, PEAKS, TUNE, COMPILE_REFERENCE, FIND_TURNS, TURN, SESSIONS } Session;
/// Their names on the command line, and in what is told.
extern const char* const SESSION_NAMES[SESSIONS];

/// A file in the folder for what is kept from turn to turn; NULL for no name.
char* kept_at(const char* work, const char* name);
_Noreturn void hold_session(Session session, const Case* packed, const char* work);
