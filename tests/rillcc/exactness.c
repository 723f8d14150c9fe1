/* exactness.c: how far results are from those of the C library's next wider type, in units in the last place.
 * tests/rillcc/test_host_math.py loads it.  (long double is wider than double on x86-64 and AArch64.) */
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

typedef long double wide;

#define QUARTERS(X) fmodl(nearbyintl(fmodl((X), 2.0L) * 2.0L) + 4.0L, 4.0L)
#define BESIDE(X) \
  ((fmodl((X), 2.0L) * 2.0L - nearbyintl(fmodl((X), 2.0L) * 2.0L)) * 1.57079632679489661923132169163975144L)

static wide of_quarters(wide x, wide quarters) {
  const wide at = fmodl(quarters, 4.0L), r = BESIDE(x);
  return at == 0.0L ? sinl(r) : at == 1.0L ? cosl(r) : at == 2.0L ? -sinl(r) : -cosl(r);
}

static wide reference_sinpi(wide x) {
  if (!isfinite(x)) return NAN;
  const wide result = of_quarters(x, QUARTERS(x));
  return result == 0.0L ? copysignl(0.0L, x) : result;
}

static wide reference_cospi(wide x) {
  if (!isfinite(x)) return NAN;
  const wide result = of_quarters(x, QUARTERS(x) + 1.0L);
  return result == 0.0L ? 0.0L : result;
}

static wide reference_normcdf(wide x) { return 0.5L * erfcl(x * -0.707106781186547524400844362104849039L); }
static double float_sinpi(double x) { return (double)reference_sinpi(x); }
static double float_cospi(double x) { return (double)reference_cospi(x); }
static double float_normcdf(double x) { return 0.5 * erfc(x * -0.7071067811865475244); }

#define ONE(NAME) \
  { #NAME, NAME, NULL, NAME##l, NULL }
#define TWO(NAME) \
  { #NAME, NULL, NAME, NULL, NAME##l }
static const struct {
  const char *name;
  double (*one)(double), (*two)(double, double);
  wide (*wide_one)(wide), (*wide_two)(wide, wide);
} functions[] = {
  ONE(exp),
  ONE(exp2),
  ONE(exp10),
  ONE(expm1),
  ONE(log),
  ONE(log2),
  ONE(log10),
  ONE(log1p),
  ONE(sin),
  ONE(cos),
  ONE(tan),
  ONE(asin),
  ONE(acos),
  ONE(atan),
  ONE(sinh),
  ONE(cosh),
  ONE(tanh),
  ONE(asinh),
  ONE(acosh),
  ONE(atanh),
  ONE(erf),
  ONE(erfc),
  ONE(cbrt),
  TWO(pow),
  TWO(atan2),
  TWO(hypot),
  { "sinpi", float_sinpi, NULL, reference_sinpi, NULL },
  { "cospi", float_cospi, NULL, reference_cospi, NULL },
  { "normcdf", float_normcdf, NULL, reference_normcdf, NULL },
};

static size_t find(const char *name) {
  size_t i = 0;
  while (strcmp(functions[i].name, name) != 0) i++;
  return i;
}

/* Of a result that should be `wanted`: in units of `digits` binary ones, or of the least number there is, 2^least.
 * Infinity counts as 2^most, the first number that is too large.  A wrong sign of zero, or a NaN in the place of a
 * number, is a large error. */
static double error(wide result, wide wanted, int digits, int least, int most) {
  if (isnan(wanted) || isnan(result)) return isnan(wanted) && isnan(result) ? 0.0 : INFINITY;
  if (signbit(wanted) != signbit(result)) return INFINITY;
  if (isinf(wanted) || result == wanted) return result == wanted ? 0.0 : INFINITY;
  const wide limit = ldexpl(1.0L, most);
  wide end = fabsl(wanted), is = fabsl(result);
  if (is > limit) is = limit;
  if (end > limit) end = limit;
  int e;
  (void)frexpl(end == limit ? end / 2.0L : end, &e);
  e -= digits;
  return (double)(fabsl(is - end) * ldexpl(1.0L, -(e < least ? least : e)));
}

int differences(size_t size, size_t n, const void *a, const void *b);
double worst_of_floats(const char *name, size_t n, const float *x, const float *y, const float *result, size_t *at);
double worst_of_doubles(const char *name, size_t n, const double *x, const double *y, const double *result, size_t *at);

/* How many numbers of `size` bytes differ in a bit, but for NaNs. */
int differences(size_t size, size_t n, const void *a, const void *b) {
  int found = 0;
  for (size_t i = 0; i < n; i++) {
    const char *x = (const char *)a + i * size, *y = (const char *)b + i * size;
    if (memcmp(x, y, size) == 0) continue;
    float f, g;
    double d, e;
    if (size == sizeof f) {
      memcpy(&f, x, size);
      memcpy(&g, y, size);
      d = f, e = g;
    } else {
      memcpy(&d, x, size);
      memcpy(&e, y, size);
    }
    found += !(isnan(d) && isnan(e));
  }
  return found;
}

/* The greatest error of `result`, function `name` of x, or of x and y, and its place. */
double worst_of_floats(const char *name, size_t n, const float *x, const float *y, const float *result, size_t *at) {
  const size_t f = find(name);
  double worst = 0.5; /* of what is the nearest number */
  for (size_t i = 0; i < n; i++) {
    const double wanted = functions[f].one ? functions[f].one(x[i]) : functions[f].two(x[i], y[i]);
    if (result[i] == (float)wanted && wanted != 0.0) continue;
    const double found = error(result[i], wanted, FLT_MANT_DIG, FLT_MIN_EXP - FLT_MANT_DIG, FLT_MAX_EXP);
    if (found > worst) worst = found, *at = i;
  }
  return worst;
}

double worst_of_doubles(const char *name, size_t n, const double *x, const double *y, const double *result,
                        size_t *at) {
  const size_t f = find(name);
  double worst = 0.5; /* of what is the nearest number */
  for (size_t i = 0; i < n; i++) {
    const wide wanted = functions[f].one ? functions[f].wide_one(x[i]) : functions[f].wide_two(x[i], y[i]);
    if (result[i] == (double)wanted && wanted != 0.0L) continue;
    const double found = error(result[i], wanted, DBL_MANT_DIG, DBL_MIN_EXP - DBL_MANT_DIG, DBL_MAX_EXP);
    if (found > worst) worst = found, *at = i;
  }
  return worst;
}
