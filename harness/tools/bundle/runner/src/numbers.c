#include "numbers.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tell.h"

void add(Numbers* numbers, double value) {
  if (numbers->count == numbers->room) {
    numbers->room = 2 * numbers->room + 64;
    numbers->at = (double*)realloc(numbers->at, numbers->room * sizeof(double));
    if (numbers->at == NULL) tell_broken("there is no memory", "for times");
  }
  numbers->at[numbers->count++] = value;
}

double sum_of(const Numbers* numbers) {
  double sum = 0;
  for (size_t i = 0; i < numbers->count; ++i) sum += numbers->at[i];
  return sum;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

double median_of(const double* values, size_t count) {
  double* sorted = (double*)malloc(count * sizeof(double));
  if (sorted == NULL) tell_broken("there is no memory", "for times");
  memcpy(sorted, values, count * sizeof(double));
  qsort(sorted, count, sizeof(double), ascending);
  const double median = count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
  free(sorted);
  return median;
}

Numbers evenly(const Numbers* numbers, size_t most) {
  Numbers kept = {0};
  const size_t count = numbers->count < most ? numbers->count : most;
  for (size_t i = 0; i < count; ++i) add(&kept, numbers->at[(2 * i + 1) * numbers->count / (2 * count)]);
  return kept;
}

double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
