#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "quote.h"
#include "tell.h"
#include "timing.h"

Protocol reference_rules(const Case* packed) {
  Protocol rules = packed->protocol;
  rules.timeout_s = rules.reference_timeout_s;
  rules.seconds = rules.reference_seconds;
  return rules;
}

static void run_turns(Program* program, double turns) {
  static const Tensor input = {.dtype = {kDLInt, 32, 1}, .ndim = 1, .shape = {1}};
  int32_t* value = (int32_t*)malloc(sizeof(int32_t));  // stays where it is: a machine may look at it later
  if (value == NULL) tell_broken("there is no memory", "for an input");
  *value = (int32_t)rint(turns);
  const char* const content = (const char*)value;
  give_inputs(program, &input, &content, 1);
  run(program);
}

static void add_samples(Program* program, double turns, double count, Numbers* into) {
  run_turns(program, turns);
  sample(program, 1, (size_t)count, into);
}

void compile_reference(const Case* packed, const char* binaries) {
  const Protocol rules = reference_rules(packed);
  Program program;
  tell_doing("compiling the reference kernel");
  load_program(&program, &packed->reference, &rules);
  run_turns(&program, rules.first_turns);
  save_binaries(&program, binaries);
}

static double shortest_of(const Numbers* times, size_t count) {
  double shortest = times->at[0];
  for (size_t i = 1; i < count; ++i) shortest = fmin(shortest, times->at[i]);
  return shortest;
}

/// The tick of the clock, as far as samples tell: what all of them are multiples of, in whole nanoseconds.
static double tick_ms(const Numbers* times) {
  int64_t tick = 0;
  for (size_t i = 0; i < times->count; ++i) {
    int64_t other = (int64_t)llrint(1e6 * times->at[i]);
    while (other != 0) {
      const int64_t rest = tick % other;
      tick = other;
      other = rest;
    }
  }
  return (double)tick / 1e6;
}

/// Whether the kernel lasts long enough with so many turns, or too long to grow.
static int long_enough(Program* program, const Case* packed, double turns) {
  const Protocol* rules = program->rules;
  Numbers times = {0};
  for (size_t i = 0; i < packed->tried_count; ++i) {
    add_samples(program, rint(packed->tried[i].share * turns), packed->tried[i].samples, &times);
  }
  const double shortest = shortest_of(&times, (size_t)packed->tried[0].samples);
  return shortest >= rules->too_long_ms || shortest >= fmax(rules->long_ms, rules->ticks * tick_ms(&times));
}

void find_turns(const Case* packed, const char* binaries, const char* turns) {
  const Protocol rules = reference_rules(packed);
  Program program;
  Numbers warming = {0};
  tell_doing("finding the turns of the reference kernel");
  load_program(&program, &packed->reference, &rules);
  use_binaries(&program, binaries);
  run_turns(&program, rules.first_turns);
  warm_up(&program, &warming);  // a GPU that has rested would seem slow
  double found = rules.first_turns;
  for (int times = 0; times < (int)rules.grown && !long_enough(&program, packed, found); ++times) found *= rules.growth;
  char digits[32];
  const int size = snprintf(digits, sizeof(digits), "%.0f", found);
  if (save_file(turns, digits, (size_t)size) != 0) tell_broken("the turns of the reference kernel cannot be kept", turns);
  tell_number("turns", found);
}

void play_reference(const Case* packed, const char* binaries, const char* turns) {
  const Protocol rules = reference_rules(packed);
  Program program;
  Numbers taken = {0};
  const Text number = read_file(turns, 0);
  const double kept = number.data ? strtod(number.data, NULL) : 0;
  if (kept < 1) tell_broken("the turns of the reference kernel cannot be read", turns);
  tell_doing("timing the reference kernel");
  load_program(&program, &packed->reference, &rules);
  use_binaries(&program, binaries);
  for (size_t i = 0; i < packed->played_count; ++i) {
    add_samples(&program, packed->played[i].share * kept, packed->played[i].samples, &taken);
  }
  tell_numbers("reference_ms", taken.at, taken.count);
}
