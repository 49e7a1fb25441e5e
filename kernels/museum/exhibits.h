// museum/exhibits.h: what the files of exhibits share: launches, and the registration
// of a bug with its fixed twin.
#pragma once

#include "launch.h"

// A function that launches a kernel with a grid of 1 or of `blocks`. A macro, since a
// launch is named as it is written.
#define LAUNCH(kernel, grid)                                   \
  [](int64_t blocks, cudaStream_t stream, auto... arguments) { \
    kernel<<<grid, kThreads, 0, stream>>>(arguments...);       \
  }

// For each exhibit of a file, with its schema.
#define DEFINE(name, schema) \
  m.def(#name schema);       \
  m.def(#name "_fixed" schema);
#define IMPLEMENT(name, schema)    \
  m.impl(#name, TORCH_BOX(&name)); \
  m.impl(#name "_fixed", TORCH_BOX(&name##_fixed));
