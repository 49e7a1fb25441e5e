// config.h: Thrust's own, and <iostream>: with nvcc, Thrust's algorithms and vectors bring it, and programs rely on that.
#pragma once

#include_next <thrust/detail/config.h>

#include <iostream>
