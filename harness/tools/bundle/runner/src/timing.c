#include "timing.h"

#include <math.h>
#include <string.h>

#include "tell.h"
#include "tvm.h"

/// How many of the newest times last for so many seconds; at least two.
static size_t last(const Numbers* times, double seconds) {
  size_t count = 0;
  double lasted_ms = 0;
  while (count < times->count && (count < 2 || lasted_ms < 1e3 * seconds)) lasted_ms += times->at[times->count - ++count];
  return count;
}

/// Whether the two halves of the last so many seconds agree.
static int steady(const Numbers* times, double seconds, double agree_within) {
  const size_t count = last(times, seconds), middle = count / 2;
  const double* from = times->at + times->count - count;
  const double before = median_of(from, middle), after = median_of(from + middle, count - middle);
  return fabs(before - after) <= agree_within * fmin(before, after);
}

/// As many inferences as last for so many seconds, at least `fewest`. Of `each_ms` 0 means that it is not known.
static void lasting(Program* program, double seconds, double fewest, double each_ms, Numbers* into) {
  const Protocol* rules = program->rules;
  Numbers times = {0};
  while ((double)times.count < fewest ||
         (1e3 * seconds - sum_of(&times) > 0.5 * each_ms && (double)times.count < rules->most_inferences)) {
    const double left = each_ms > 0 ? ceil((1e3 * seconds - sum_of(&times)) / each_ms) : 0;
    const double most = each_ms > 0 ? fmax(1, floor(rules->call_share * 1e3 * rules->timeout_s / each_ms)) : fewest;
    tell_doing("timing");
    sample(program, 0, (size_t)fmin(fmax(left, fewest - (double)times.count), most), &times);
    each_ms = fmax(median_of(times.at, times.count), rules->shortest_ms);
  }
  for (size_t i = 0; i < times.count; ++i) add(into, times.at[i]);
}

/// How long the times have to be steady: less on a budget that such a time would use up.
static double steady_s_of(const Protocol* rules) { return fmin(rules->steady_s, rules->warm_up_share * rules->seconds); }

static size_t affordable(double seconds, double each_ms, double fewest, double most) {
  return (size_t)fmax(fewest, fmin(most, floor(seconds * 1e3 / fmax(each_ms, 1e-6))));
}

static void tell_some(const char* name, const Numbers* times, double most) {
  const Numbers kept = evenly(times, (size_t)most);
  tell_numbers(name, kept.at, kept.count);
}

/// Kernels of an inference, counted by the probe while the device's timer runs.
static void count_launches(Program* program, TVMFFIAny probe) {
  Numbers times = {0};
  const TVMFFIAny places = ask(probe, "watch_kernels");
  if (places.v_int64 == 0) return;
  release(ask(probe, "launches"));  // and forget what was before
  sample(program, 1, 1, &times);
  tell_answer("launches", ask(probe, "launches"));
}

void time_batches(Program* program, TVMFFIAny probe, double each_ms) {
  const Protocol* rules = program->rules;
  const double room = rules->batch_share * rules->seconds * 1e3 / (2 * rules->batch_repeat * fmax(each_ms, 1e-3));
  const double batch = fmin(rules->largest_batch, floor(room));
  if (rules->quick != 0 || batch < rules->smallest_batch) return;
  tell_doing("timing batches of inferences");
  const TVMFFIAny args[4] = {program->machine, a_text(program->artifact->entry), an_int((int64_t)batch),
                             an_int((int64_t)rules->batch_repeat)};
  const TVMFFIAny answer = call_member(probe, "batches", args, 4);
  tell_number("batch", batch);
  tell_answer("batches", answer);
  tell_doing("watching kernels");
  count_launches(program, probe);
}

void warm_up(Program* program, Numbers* times) {
  const Protocol* rules = program->rules;
  const double began = now_s(), steady_s = steady_s_of(rules);
  lasting(program, steady_s, 2, 0, times);
  while (!steady(times, steady_s, rules->agree_within) && now_s() - began < rules->warm_up_share * rules->seconds) {
    lasting(program, steady_s / 4, 2, times->at[times->count - 1], times);
  }
}

static double quick_look(Program* program) {
  Numbers taken = {0};
  tell_doing("timing");
  sample(program, 0, (size_t)program->rules->quick_samples, &taken);
  tell_numbers("wall_ms", taken.at, taken.count);
  tell_number("inferences", (double)taken.count);
  return median_of(taken.at, taken.count);
}

double measure(Program* program) {
  const Protocol* rules = program->rules;
  if (rules->quick != 0) return quick_look(program);
  Numbers warming = {0}, taken = {0}, device = {0};
  const double began = now_s(), steady_s = steady_s_of(rules);
  warm_up(program, &warming);
  const size_t newest = last(&warming, steady_s);
  const double each_ms = median_of(warming.at + warming.count - newest, newest);
  const double left_s = fmax(0, rules->seconds - (now_s() - began)), wall_s = left_s * (1 - rules->device_share);
  const size_t kept = affordable(wall_s, each_ms, rules->fewest, fmax(rules->samples, rules->fewest));
  lasting(program, fmin(rules->sampled_s, wall_s), (double)kept, each_ms, &taken);
  tell_doing("timing by the device's timer");
  sample(program, 1, affordable(left_s * rules->device_share, each_ms, rules->fewest_device, rules->fewest), &device);
  tell_some("wall_ms", &taken, (double)kept);
  tell_numbers("device_ms", device.at, device.count);
  tell_some("warm_up_ms", &warming, rules->warm_up_kept);
  tell_bool("warmed_up", steady(&warming, steady_s, rules->agree_within));
  tell_number("inferences", (double)taken.count);
  const Numbers samples = evenly(&taken, kept);
  return median_of(samples.at, samples.count);
}
