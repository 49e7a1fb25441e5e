// surface_indirect_functions.h: replaces CUDA's header of this name; see simt/textures.h.
#pragma once

#include "simt/textures.h"
