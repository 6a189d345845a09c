// Lists of times.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
  double* at;
  size_t count;
  size_t room;
} Numbers;

void add(Numbers* numbers, double value);
double sum_of(const Numbers* numbers);
/// The mean of the two in the middle where they are even in number, as Python's `statistics.median`.
double median_of(const double* values, size_t count);
/// So many of them at equal distances, or all of them.
Numbers evenly(const Numbers* numbers, size_t most);
/// A clock that cannot jump.
double now_s(void);
