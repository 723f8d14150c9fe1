/* options.h: the environment, for the files that read more of it than struct fake_options holds. */
#ifndef FAKE_OPTIONS_H
#define FAKE_OPTIONS_H

#include "engine.h"

/* The value of RILL_FAKE_<name>, or NULL. */
const char *fake_environment(const char *name);

#endif
