// nvToolsExt.h: the name of NVTX's header before version 3.
#pragma once

#include "nvtx3/nvToolsExt.h"
