// transform_input_iterator.cuh: see iterators.cuh.
#pragma once

#include "iterators.cuh"
