/* The same checks, compiled with exceptions and without. */
#ifndef RILL_TESTS_CPP_CONFORMANCE_HPP
#define RILL_TESTS_CPP_CONFORMANCE_HPP

#include <rill/base.h>

int run_throwing(const rill_device *handle);
int run_returning(const rill_device *handle);

#endif
