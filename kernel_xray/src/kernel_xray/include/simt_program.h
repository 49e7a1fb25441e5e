// simt_program.h: what a translated source that does not use PyTorch's stable ABI includes first. g++ can compile it once
// for all programs (runtime/compiled_headers.py): it has a name of its own because g++ finds a compiled header in place
// of the text only where it comes first, and sources include cuda_runtime.h again.
#pragma once

#include "cuda_runtime.h"
